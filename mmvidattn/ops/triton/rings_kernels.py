# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Kernels that read and write entries of ring buffers [B, M, W].

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
def read_rows_kernel(ring, steps, rows, number, length, width,
                     BLOCK: tl.constexpr):
    # Row i of the result belongs to stream i // number.
    i = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    place = (i // number) * length + _place(tl.load(steps + i), length)
    row = tl.load(ring + place * width + columns, mask=inside)
    tl.store(rows + i * width + columns, row, mask=inside)


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


def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Launch the read for rings [B, M, W] and steps [B, K], contiguous."""
    _, length, width = ring.shape
    rows = ring.new_empty(*steps.shape, width)
    if rows.numel():
        with _device_of(ring):
            read_rows_kernel[_grid(steps.numel(), width)](
                ring, steps, rows, steps.shape[1], length, width, BLOCK=BLOCK)
    return rows


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Launch the write for rings [B, M, W], step [B], row [B, W], keep [B]."""
    _, length, width = ring.shape
    if row.numel():
        with _device_of(ring):
            push_row_kernel[_grid(step.numel(), width)](
                ring, step, row, keep, length, width, BLOCK=BLOCK)


def _grid(number: int, width: int) -> tuple[int, int]:
    return number, triton.cdiv(width, BLOCK)


def _device_of(x: Tensor) -> torch.cuda.device_of:
    # Triton launches on the current device. This does nothing on a CPU.
    return torch.cuda.device_of(x)
