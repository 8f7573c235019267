# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Operators on rings of many streams, one kernel each.

Plain, a read or a write is half a dozen kernels, and a stream's step reads and
writes up to eight rings: with one stream their launches are most of its time.
Nothing is added up, so the results are the plain code's, bit for bit.
"""
import torch
from torch import Tensor

from ..dispatch import needs_gradients, not_eager_autograd, register_backend
from ..temporal_smoothing import rings
from .available import why_no_kernel


@torch.library.custom_op('mmvidattn::triton_read_rows', mutates_args=())
def triton_read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Rows ``steps`` [B, K] of rings [B, M, W]: [B, K, W]."""
    from .rings_kernels import read_rows
    return read_rows(ring, steps)


@triton_read_rows.register_fake
def _(ring: Tensor, steps: Tensor) -> Tensor:
    return ring.new_empty(*steps.shape, ring.shape[2])


@torch.library.custom_op('mmvidattn::triton_push_row', mutates_args=('ring', ))
def triton_push_row(ring: Tensor, step: Tensor, row: Tensor,
                    keep: Tensor) -> None:
    """Write rows [B, W], or those before, as ``step`` [B] of [B, M, W].

    All are of one dtype.
    """
    from .rings_kernels import push_row
    push_row(ring, step, row, keep)


@triton_push_row.register_fake
def _(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    return None


def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """As :func:`mmvidattn.ops.temporal_smoothing.read_rows`."""
    lead, tail = steps.dim() - 1, ring.shape[steps.dim():]
    streams = steps[..., 0].numel()
    rows = triton_read_rows(
        ring.view(streams, ring.shape[lead], -1),
        steps.reshape(streams, -1).contiguous())
    return rows.view(*steps.shape, *tail)


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """As :func:`mmvidattn.ops.temporal_smoothing.push_row`."""
    streams = step.numel()
    triton_push_row(
        ring.view(streams, ring.shape[step.dim()], -1),
        step.reshape(-1).contiguous(),
        row.reshape(streams, -1).to(ring.dtype).contiguous(),
        keep.reshape(-1).contiguous())


def why_not_read_rows(ring: Tensor, steps: Tensor) -> str | None:
    """Reason not to run :func:`read_rows`, or None."""
    return _why_not(ring, steps)


def why_not_push_row(ring: Tensor, step: Tensor, row: Tensor,
                     keep: Tensor) -> str | None:
    """Reason not to run :func:`push_row`, or None."""
    return _why_not(ring, step, row)


def _why_not(ring: Tensor, steps: Tensor,
             row: Tensor | None = None) -> str | None:
    reason = why_no_kernel(ring) or not_eager_autograd()
    if reason:
        return reason
    if needs_gradients(ring, *(() if row is None else (row, ))):
        return 'with gradients'
    if not ring.is_floating_point() or steps.dtype != torch.int64:
        return 'rows are not floating-point or steps not int64'
    if not ring.is_contiguous():
        return 'the ring is not contiguous'
    return None


for op, function, why_not in (
    (rings.read_rows, read_rows, why_not_read_rows),
    (rings.push_row, push_row, why_not_push_row)):
    register_backend(
        op, 'Triton', function, why_not, where='CUDA, inference', gain=None)
