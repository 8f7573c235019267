# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ring buffers [B, M, *] of the latest M entries of B streams.

The entry of step t is at index t % M. The streams may differ in age.
"""
import torch
from torch import Tensor


def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Read the entries of K steps of each stream.

    Args:
        ring: [B, M, *].
        steps: int64, [B, K]; step -i is the entry of step M - i.

    Returns:
        [B, K, *].
    """
    index = _first_index(ring)[:, None] + steps % ring.shape[1]
    return ring.flatten(0, 1).index_select(
        0, index.flatten()).unflatten(0, steps.shape)


def write_row(ring: Tensor, step: Tensor, row: Tensor) -> None:
    """Write the entry of ``step`` of each stream, in place.

    Args:
        ring: [B, M, *], contiguous.
        step: int64, [B].
        row: New entries, [B, *].
    """
    ring.view(-1, *row.shape[1:]).index_copy_(
        0, _first_index(ring) + step % ring.shape[1], row.to(ring.dtype))


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Write the entry of ``step``, or repeat the entry of the step before.

    Args:
        ring: [B, M, *], contiguous; written in place.
        step: int64, [B].
        row: New entries, [B, *].
        keep: Bool, [B]. If False, the entry of ``step - 1`` replaces ``row``.
    """
    last = read_rows(ring, step[:, None] - 1)[:, 0]
    keep = keep.view(-1, *[1] * (row.dim() - 1))
    write_row(ring, step, row.where(keep, last.to(row.dtype)))


def fill_rows(ring: Tensor, step: Tensor, number: int, row: Tensor) -> None:
    """Write one entry to steps ``step`` to ``step + number - 1``, in place.

    Args:
        ring: [B, M, *].
        step: int64, [B].
        number: Number of steps; it may exceed M.
        row: New entries, [B, *].
    """
    length = ring.shape[1]
    index = torch.arange(length, device=ring.device)
    filled = (index - step[:, None]) % length < number
    filled = filled.view(*filled.shape, *[1] * (ring.dim() - 2))
    ring.copy_(row.unsqueeze(1).to(ring.dtype).where(filled, ring))


def _first_index(ring: Tensor) -> Tensor:
    """Return where each stream begins in ``ring.flatten(0, 1)``, [B]."""
    return torch.arange(ring.shape[0], device=ring.device) * ring.shape[1]
