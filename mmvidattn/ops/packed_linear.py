# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear map with a weight that is packed for oneDNN."""
import torch
from torch import Tensor

from . import dispatch
from .dispatch import dispatched, not_eager_autograd, register_backend
from .linear import LEAST_PRODUCTS_OF_ROW, linear
from .torch_private import (
    CAN_PACK,
    is_mkldnn_bf16_supported,
    onednn_linear,
    reorder_weight,
)

# Number of rows for which oneDNN packs the weight. The layout for 32 rows is
# fast for any number of rows; the layout for one row is not.
ROWS = 32


def pack_weight(weight: Tensor) -> Tensor | None:
    """Copy a weight into the memory layout that oneDNN needs.

    Without packing, each product copies the weight, which takes as long as a
    product with some hundred rows.

    Args:
        weight: [K, C].

    Returns:
        Opaque tensor for :func:`packed_linear`. None if the weight is small,
        quantized, not on a CPU, or in a dtype for which the backend was not
        measured to be faster on this processor.
    """
    # Quantized weights have other classes.
    if (not CAN_PACK or weight.device.type != 'cpu'
            or weight.dtype not in (torch.float32, torch.bfloat16)
            or type(weight) not in (Tensor, torch.nn.Parameter)
            or weight.numel() < LEAST_PRODUCTS_OF_ROW):
        return None
    if weight.dtype == torch.bfloat16 and not is_mkldnn_bf16_supported():
        return None
    if not dispatch.may_run(packed_linear, 'oneDNN', weight):
        return None
    return reorder_weight(weight.detach(), ROWS)


@dispatched
def packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None,
                  packed: Tensor | None) -> Tensor:
    """Compute ``x W^T + b``, as :func:`mmvidattn.ops.linear` does.

    Args:
        x: [*, C].
        weight: [K, C].
        bias: [K] or None.
        packed: Result of :func:`pack_weight`.

    Returns:
        [*, K].
    """
    return linear(x, weight, bias)


def _why_not_onednn(x: Tensor, weight: Tensor, bias: Tensor | None,
                    packed: Tensor | None) -> str | None:
    if packed is None:
        return 'not packed'
    reason = not_eager_autograd()
    if reason:
        return reason
    if torch.compiler.is_compiling():
        return 'a compiler cannot read a packed weight'
    if torch.is_grad_enabled():
        return 'with gradients'
    if (x.device.type != 'cpu' or x.dtype != packed.dtype
            or torch.is_autocast_enabled('cpu')):
        return 'on another device or of another dtype'
    return None


register_backend(
    packed_linear,
    'oneDNN',
    lambda x, weight, bias, packed: onednn_linear(x, packed, bias),
    _why_not_onednn,
    where='CPU, inference in float32 and bfloat16')
