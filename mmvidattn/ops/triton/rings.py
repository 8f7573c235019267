# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Triton backends of the ops on ring buffers, one kernel each.

In the plain code, a read or a write launches about six kernels, and a step of
a stream reads and writes up to eight rings. With a single stream, the launches
take most of the time of a step. Because the kernels only copy, their results
are bit-equal to the plain code.
"""
import torch
from torch import Tensor

from ..dispatch import needs_gradients, not_eager_autograd, register_backend
from ..temporal_smoothing import rings
from .available import why_no_kernel


@torch.library.custom_op('mmvidattn::triton_read_rows', mutates_args=())
def triton_read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Read ``steps`` [B, K] of rings [B, M, W]: [B, K, W]."""
    from .rings_kernels import read_rows
    return read_rows(ring, steps)


@triton_read_rows.register_fake
def _(ring: Tensor, steps: Tensor) -> Tensor:
    return ring.new_empty(*steps.shape, ring.shape[2])


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


def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Flatten streams and entries, and read them with the kernel."""
    lead, tail = steps.dim() - 1, ring.shape[steps.dim():]
    streams = steps[..., 0].numel()
    rows = triton_read_rows(
        ring.view(streams, ring.shape[lead], -1),
        steps.reshape(streams, -1).contiguous())
    return rows.view(*steps.shape, *tail)


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Flatten streams and entries, and write them with the kernel."""
    streams = step.numel()
    triton_push_row(
        ring.view(streams, ring.shape[step.dim()], -1),
        step.reshape(-1).contiguous(),
        row.reshape(streams, -1).to(ring.dtype).contiguous(),
        keep.reshape(-1).contiguous())


def why_not(ring: Tensor, steps: Tensor, row: Tensor | None = None,
            keep: Tensor | None = None) -> str | None:
    """Return why neither backend can run with these arguments, or None."""
    reason = why_no_kernel(ring) or not_eager_autograd()
    if reason:
        return reason
    if needs_gradients(ring, *(() if row is None else (row, ))):
        return 'with gradients'
    if not ring.is_floating_point() or steps.dtype != torch.int64:
        return 'the ring is not floating-point or steps are not int64'
    if not ring.is_contiguous():
        return 'the ring is not contiguous'
    return None


for op, function in ((rings.read_rows, read_rows), (rings.push_row, push_row)):
    register_backend(
        op, 'Triton', function, why_not, where='CUDA, inference')
