# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kernel that writes entries of ring buffers [B, M, W].

Memory offsets are int64.
"""
import torch
import triton
import triton.language as tl
from torch import Tensor

# Channels that one program copies.
BLOCK = 1024


@triton.jit
def _place(step, length):
    """Return Python's ``step % length``; Triton keeps the sign of step."""
    return (step % length + length) % length


@triton.jit
def push_row_kernel(ring, steps, rows, keep, length, width,
                    BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    step = tl.load(steps + i)
    is_kept = tl.load(keep + i) != 0
    first = ring + i * length * width
    before = first + _place(step - 1, length) * width
    # Load only the row that is written.
    row = tl.load(rows + i * width + columns, mask=inside & is_kept, other=0)
    last = tl.load(before + columns, mask=inside & (is_kept == 0), other=0)
    row = tl.where(is_kept, row, last)
    tl.store(first + _place(step, length) * width + columns, row, mask=inside)


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Launch the write for rings [B, M, W], step [B], row [B, W], keep [B]."""
    _, length, width = ring.shape
    if row.numel():
        with _device_of(ring):
            push_row_kernel[step.numel(), triton.cdiv(width, BLOCK)](
                ring, step, row, keep, length, width, BLOCK=BLOCK)


def _device_of(x: Tensor) -> torch.cuda.device_of:
    # Triton launches on the current device. This does nothing on a CPU.
    return torch.cuda.device_of(x)
