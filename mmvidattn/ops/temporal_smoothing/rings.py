# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ring buffers [*, M, ...] of the latest M entries of streams [*].

The entry of step t is at index t % M. The streams may differ in age.
"""
import torch
from torch import Tensor


def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Read the entries of K steps of each stream.

    Args:
        ring: [*, M, ...].
        steps: int64, [*, K]; step -i is the entry of step M - i.

    Returns:
        [*, K, ...].
    """
    lead = steps.dim() - 1
    index = _first_index(ring, steps[..., 0])[..., None] + \
        steps % ring.shape[lead]
    return ring.flatten(0, lead).index_select(
        0, index.flatten()).unflatten(0, steps.shape)


def write_row(ring: Tensor, step: Tensor, row: Tensor) -> None:
    """Write the entry of ``step`` of each stream, in place.

    Args:
        ring: [*, M, ...], contiguous.
        step: int64, [*].
        row: New entries, [*, ...].
    """
    first = _first_index(ring, step)
    ring.view(-1, *row.shape[step.dim():]).index_copy_(
        0, (first + step % ring.shape[step.dim()]).flatten(),
        row.flatten(0, step.dim() - 1).to(ring.dtype)
        if step.dim() else row[None].to(ring.dtype))


def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Write the entry of ``step``, or repeat the entry of the step before.

    Args:
        ring: [*, M, ...], contiguous; written in place.
        step: int64, [*].
        row: New entries, [*, ...].
        keep: Bool, [*]. If False, the entry of ``step - 1`` replaces ``row``.
    """
    last = read_rows(ring, step[..., None] - 1).squeeze(step.dim())
    keep = keep.view(*keep.shape, *[1] * (row.dim() - keep.dim()))
    write_row(ring, step, row.where(keep, last.to(row.dtype)))


def fill_rows(ring: Tensor, step: Tensor, number: int, row: Tensor) -> None:
    """Write one entry to steps ``step`` to ``step + number - 1``, in place.

    Args:
        ring: [*, M, ...].
        step: int64, [*].
        number: Number of steps; it may exceed M.
        row: New entries, [*, ...].
    """
    lead, length = step.dim(), ring.shape[step.dim()]
    index = torch.arange(length, device=ring.device)
    filled = (index - step[..., None]) % length < number
    filled = filled.view(*filled.shape, *[1] * (ring.dim() - lead - 1))
    ring.copy_(row.unsqueeze(lead).to(ring.dtype).where(filled, ring))


def _first_index(ring: Tensor, like: Tensor) -> Tensor:
    """Return where each stream begins in ``ring.flatten(0, lead)``."""
    streams = torch.arange(like.numel(), device=like.device)
    return streams.view(like.shape) * ring.shape[like.dim()]
