# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A linear map of tokens."""
import torch
import torch.nn.functional as F
from torch import Tensor

from .dispatch import dispatched, register_backend

MOST_ROWS = 64
# Before 2.7, torch does not tell the two apart.
_is_exporting = getattr(
    torch.compiler, 'is_exporting', torch.compiler.is_compiling)


@dispatched
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``x W^T + b``, as ``torch.nn.functional.linear``.

    Args:
        x: [*, C].
        weight: [K, C].
        bias: [K] or None.

    Returns:
        [*, K].
    """
    return F.linear(x, weight, bias)


def _of_columns(x: Tensor, weight: Tensor,
                bias: Tensor | None = None) -> Tensor:
    """``(W x^T + b)^T``.

    MKL copies the weight of ``x W^T`` into an order of its own in each call,
    which with few rows takes as long as the product. It need not for
    ``W x^T``.
    """
    columns = x.reshape(-1, x.shape[-1]).t()
    y = weight @ columns if bias is None else torch.addmm(
        bias[:, None], weight, columns)
    return y.t().reshape(*x.shape[:-1], len(weight))


def _why_not_of_columns(x: Tensor, weight: Tensor,
                        bias: Tensor | None = None) -> str | None:
    # First of all: a size that is looked at is fixed in an export.
    if _is_exporting():
        return 'an exported program takes any number of rows'
    if x.device.type != 'cpu':
        return 'not on a CPU'
    if not x.dtype == weight.dtype == torch.float32 or \
            torch.is_autocast_enabled('cpu'):
        return 'not in float32'
    if torch.is_grad_enabled():
        return 'with gradients'
    if not 1 < x.numel() // x.shape[-1] <= MOST_ROWS:
        return 'one row, or too many'
    return None


register_backend(
    linear,
    'columns',
    _of_columns,
    _why_not_of_columns,
    where=f'CPU, inference in float32, 2 to {MOST_ROWS} rows',
    gain='not measured')
