# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Triton backend of :func:`push_row`, a write to ring buffers.

The plain code launches about six kernels for a write, and this backend one. It
only copies, so its result is bit-equal to the plain code.
"""
import torch
from torch import Tensor

from ..dispatch import needs_gradients, not_eager_autograd, register_backend
from ..temporal_smoothing import rings
from .available import why_no_kernel


@torch.library.custom_op('mmvidattn::triton_push_row', mutates_args=('ring', ))
def triton_push_row(ring: Tensor, step: Tensor, row: Tensor,
                    keep: Tensor) -> None:
    """Write ``row`` [B, W], or the previous entry, to rings [B, M, W].

    ``ring`` and ``row`` have the same dtype; ``step`` and ``keep`` are [B].
    """
    from .rings_kernels import push_row
    push_row(ring, step, row, keep)


@triton_push_row.register_fake
def _(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    return None


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Flatten streams and entries, and write them with the kernel."""
    streams = step.numel()
    triton_push_row(
        ring.view(streams, ring.shape[step.dim()], -1),
        step.reshape(-1).contiguous(),
        row.reshape(streams, -1).to(ring.dtype).contiguous(),
        keep.reshape(-1).contiguous())


def why_not(ring: Tensor, step: Tensor, row: Tensor,
            keep: Tensor) -> str | None:
    """Return why the kernel cannot run with these arguments, or None."""
    reason = why_no_kernel(ring) or not_eager_autograd()
    if reason:
        return reason
    if needs_gradients(ring, row):
        return 'with gradients'
    if not ring.is_floating_point() or step.dtype != torch.int64:
        return 'the ring is not floating-point or step is not int64'
    if not ring.is_contiguous():
        return 'the ring is not contiguous'
    return None


register_backend(
    rings.push_row, 'Triton', push_row, why_not, where='CUDA, inference')
