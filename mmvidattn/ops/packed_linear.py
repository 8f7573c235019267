# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A linear map by a weight that stands in the order a product reads it in."""
import torch
from torch import Tensor

from . import dispatch
from .dispatch import dispatched, not_eager_autograd, register_backend
from .linear import LEAST_PRODUCTS_OF_ROW, linear
from .processor import IS_AMD
from .torch_private import (
    CAN_PACK,
    is_mkldnn_bf16_supported,
    onednn_linear,
    reorder_weight,
)

# oneDNN is told how many rows to expect. The order for 32 is good for any
# number; that for one is not.
ROWS = 32


def pack_weight(weight: Tensor) -> Tensor | None:
    """A copy of a weight in the order in which oneDNN reads it.

    A product by the weight itself copies it so in each call. With up to some
    hundred rows that takes as long as the product.

    Args:
        weight: [K, C].

    Returns:
        Opaque, for :func:`packed_linear`. None where it would gain nothing:
        weights that are small or not on a CPU, processors without oneDNN, and
        in float32 those not of AMD.
    """
    dtypes = [torch.float32] if IS_AMD else []
    if CAN_PACK and is_mkldnn_bf16_supported():
        dtypes.append(torch.bfloat16)
    # A quantized weight is a tensor of a class of its own.
    if (not dispatch.enabled() or not CAN_PACK or weight.device.type != 'cpu'
            or weight.dtype not in dtypes
            or type(weight) not in (Tensor, torch.nn.Parameter)
            or weight.numel() < LEAST_PRODUCTS_OF_ROW):
        return None
    return reorder_weight(weight.detach(), ROWS)


@dispatched
def packed_linear(x: Tensor, weight: Tensor, bias: Tensor | None,
                  packed: Tensor | None) -> Tensor:
    """``x W^T + b``, as :func:`mmvidattn.ops.linear`.

    Args:
        x: [*, C].
        weight: [K, C].
        bias: [K] or None.
        packed: Of :func:`pack_weight`.

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
    where='CPU, inference in bfloat16, or of AMD in float32',
    gain='0.9 to 1.8')
