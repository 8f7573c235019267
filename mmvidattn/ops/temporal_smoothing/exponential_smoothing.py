# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention to all of a stream's past, at a constant cost a sample."""
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..precision import at_least_float32, without_autocast


class SmoothingState(NamedTuple):
    """What exponential smoothing keeps of a stream, in float32 or wider.

    Attributes:
        maximum: The largest decayed score so far, [*, N, G]; -inf of nothing.
        weight: Sum of the decayed weights relative to it, [*, N, G].
        total: The sum of the values with these weights, [*, N, G, E].
    """
    maximum: Tensor
    weight: Tensor
    total: Tensor


def smoothing_state(q: Tensor, value_dims: int) -> SmoothingState:
    """The state of a stream that nothing has come from.

    Args:
        q: The queries, [*, N, G, D].
        value_dims: Channels E of a head's values.
    """
    q, = at_least_float32(q)
    zeros = q.new_zeros(*q.shape[:-1], value_dims)
    return SmoothingState(
        torch.full_like(zeros[..., 0], -torch.inf), zeros[..., 0], zeros)


def exponential_smoothing(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        state: SmoothingState,
        *,
        decay: float = 1.,
        scale: float | None = None) -> tuple[Tensor, SmoothingState]:
    """Take one sample of each stream, and attend to all so far.

    `Real-time Online Video Detection with Temporal Smoothing Transformers
    <https://arxiv.org/abs/2209.09236>`_, Eq. 6. The queries are those of all
    steps.

    Differs from the paper and the released code: the weights are relative to
    the largest so far, which a step may raise. They cannot overflow, and do
    not vanish when the scores drift.

    Args:
        q: Queries, [*, N, G, D].
        k: Key of the new sample, [*, G, D].
        v: Its value, [*, G, E].
        state: What the samples before it left: :func:`smoothing_state`, or
            the result of the step before.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        scale: Of the scores; ``D ** -0.5`` by default.

    Returns:
        The attention [*, N, G, E] in the dtype of ``v``, and the new state.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    check_sample('exponential_smoothing', q, k, v, decay)
    dtype, scale = v.dtype, q.shape[-1]**-0.5 if scale is None else scale
    with without_autocast(q.device.type):
        q, k, v = at_least_float32(q, k, v)
        score = sample_scores(q, k, scale)
        aged = state.maximum + math.log(decay)
        maximum = torch.maximum(aged, score)
        old, new = (aged - maximum).exp(), (score - maximum).exp()
        weight = old * state.weight + new
        total = old[..., None] * state.total + \
            new[..., None] * v.unsqueeze(-3)
        y = total / weight[..., None]
    return y.to(dtype), SmoothingState(maximum, weight, total)


def sample_scores(q: Tensor, k: Tensor, scale: float) -> Tensor:
    """Scores of one key [*, G, D] for queries [*, N, G, D]: [*, N, G]."""
    return (q * (scale * k).unsqueeze(-3)).sum(dim=-1)


def check_sample(name: str, q: Tensor, k: Tensor, v: Tensor,
                 decay: float) -> None:
    """Queries, one key and one value fit each other, and the decay is one.

    Raises:
        ValueError: If they do not, or it is not in (0, 1].
    """
    if (q.dim() < 3 or q.shape[:-3] + q.shape[-2:] != k.shape
            or k.shape[:-1] != v.shape[:-1]):
        raise ValueError(
            f'{name} takes q [*, N, G, D], k [*, G, D] and v [*, G, E], got '
            f'{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}')
    if not 0 < decay <= 1:
        raise ValueError(f'decay must be in (0, 1], got {decay}')
