# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The latest samples of streams, each projected and scored once."""
from typing import NamedTuple

import torch
from torch import Tensor

from ..precision import at_least_float32, without_autocast


class SampleRing(NamedTuple):
    """The latest M samples of streams, in float32 or wider.

    Sample t of a stream is in place t % M.

    Attributes:
        scores: For each query, [*, M, N, G].
        values: [*, M, G, E].
    """
    scores: Tensor
    values: Tensor


def sample_ring(scores: Tensor, v: Tensor, length: int) -> SampleRing:
    """The ring of streams that nothing has come from.

    Args:
        scores: Of a sample, [*, N, G], for shape, dtype and device.
        v: Its value, [*, G, E], likewise.
        length: Samples M that are kept.

    Raises:
        ValueError: If ``length`` is below 1.
    """
    if length < 1:
        raise ValueError(f'length must be at least 1, got {length}')
    return SampleRing(*(
        x.new_zeros(*x.shape[:-2], length, *x.shape[-2:])
        for x in at_least_float32(scores, v)))


def sample_scores(q: Tensor,
                  k: Tensor,
                  scale: float | None = None) -> Tensor:
    """Scores of a key for queries that are those of all steps.

    Args:
        q: Queries, [N, G, D].
        k: Keys, [*, G, D].
        scale: Of the scores; ``D ** -0.5`` by default.

    Returns:
        [*, N, G], in float32 or wider.

    Raises:
        ValueError: If the shapes do not fit.
    """
    if q.dim() != 3 or q.shape[1:] != k.shape[-2:]:
        raise ValueError('sample_scores takes q [N, G, D] and k [*, G, D], '
                         f'got {tuple(q.shape)} and {tuple(k.shape)}')
    scale = q.shape[-1]**-0.5 if scale is None else scale
    with without_autocast(q.device.type):
        q, k = at_least_float32(q, k)
        return torch.einsum('ngd,...gd->...ng', q, scale * k)


def write_row(ring: Tensor, step: Tensor, row: Tensor) -> None:
    """Write row ``step`` of each stream into its ring, in place.

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


def read_rows(ring: Tensor, steps: Tensor) -> Tensor:
    """Rows of each stream's ring.

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


def _first_rows(ring: Tensor, like: Tensor) -> Tensor:
    """Where each stream's rows begin in ``ring.flatten(0, lead)``."""
    rows = torch.arange(like.numel(), device=like.device)
    return rows.view(like.shape) * ring.shape[like.dim()]


def check_sample(name: str, scores: Tensor, v: Tensor, decay: float) -> None:
    """Scores and values of a sample fit each other, and the decay is one.

    Raises:
        ValueError: If they do not, or it is not in (0, 1].
    """
    if scores.dim() < 2 or scores.shape[:-2] != v.shape[:-2] or (
            scores.shape[-1:] != v.shape[-2:-1]):
        raise ValueError(
            f'{name} takes scores [*, N, G] and v [*, G, E], got '
            f'{tuple(scores.shape)} and {tuple(v.shape)}')
    if not 0 < decay <= 1:
        raise ValueError(f'decay must be in (0, 1], got {decay}')
