# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ring buffers [*, M, ...] of the latest rows of streams [*].

Row t of a stream is in place t % M. The streams may differ in age.
"""
import torch
from torch import Tensor

from ..dispatch import dispatched


@dispatched
def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Rows of each stream.

    Args:
        ring: [*, M, ...].
        steps: int64, [*, K]; below 0 they count back from row M.

    Returns:
        [*, K, ...].
    """
    lead = steps.dim() - 1
    places = _first_rows(ring, steps[..., 0])[..., None] + \
        steps % ring.shape[lead]
    return ring.flatten(0, lead).index_select(
        0, places.flatten()).unflatten(0, steps.shape)


def write_row(ring: Tensor, step: Tensor, row: Tensor) -> None:
    """Write row ``step`` of each stream, in place.

    Args:
        ring: [*, M, ...], contiguous.
        step: int64, [*].
        row: [*, ...].
    """
    first = _first_rows(ring, step)
    ring.view(-1, *row.shape[step.dim():]).index_copy_(
        0, (first + step % ring.shape[step.dim()]).flatten(),
        row.flatten(0, step.dim() - 1).to(ring.dtype)
        if step.dim() else row[None].to(ring.dtype))


@dispatched
def push_row(ring: Tensor, step: Tensor, row: Tensor, keep: Tensor) -> None:
    """Write row ``step`` of each stream, or the one before once more.

    Args:
        ring: [*, M, ...], contiguous; it is written in place.
        step: int64, [*].
        row: [*, ...].
        keep: Bool, [*]: where not, row ``step - 1`` stands in for ``row``.
    """
    last = read_rows(ring, step[..., None] - 1).squeeze(step.dim())
    keep = keep.view(*keep.shape, *[1] * (row.dim() - keep.dim()))
    write_row(ring, step, row.where(keep, last.to(row.dtype)))


def fill_rows(ring: Tensor, step: Tensor, number: int, row: Tensor) -> None:
    """Write one row as rows ``step`` to ``step + number - 1``, in place.

    Args:
        ring: [*, M, ...].
        step: int64, [*].
        number: Rows; any number.
        row: [*, ...].
    """
    lead, length = step.dim(), ring.shape[step.dim()]
    places = torch.arange(length, device=ring.device)
    filled = (places - step[..., None]) % length < number
    filled = filled.view(*filled.shape, *[1] * (ring.dim() - lead - 1))
    ring.copy_(row.unsqueeze(lead).to(ring.dtype).where(filled, ring))


def _first_rows(ring: Tensor, like: Tensor) -> Tensor:
    """Index of each stream's first row in ``ring.flatten(0, lead)``."""
    rows = torch.arange(like.numel(), device=like.device)
    return rows.view(like.shape) * ring.shape[like.dim()]
