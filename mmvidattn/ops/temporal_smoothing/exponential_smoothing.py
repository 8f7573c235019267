# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention to all of a stream's past, at a constant cost a sample."""
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..precision import at_least_float32, without_autocast
from .sample_ring import check_sample


class SmoothingState(NamedTuple):
    """What exponential smoothing keeps of a stream, in float32 or wider.

    Attributes:
        maximum: The largest decayed score so far, [*, N, G]; -inf of nothing.
            float64: it ages at each step, and the errors of that would add
            up over millions.
        weight: Sum of the decayed weights relative to it, [*, N, G].
        total: The sum of the values with these weights, [*, N, G, E].
    """
    maximum: Tensor
    weight: Tensor
    total: Tensor


def smoothing_state(scores: Tensor, value_dims: int) -> SmoothingState:
    """The state of streams that nothing has come from.

    Args:
        scores: Of a sample, [*, N, G], for shape, dtype and device.
        value_dims: Channels E of a head's values.
    """
    zeros, = at_least_float32(torch.zeros_like(scores))
    return SmoothingState(
        torch.full_like(zeros, -torch.inf, dtype=torch.float64), zeros,
        zeros.new_zeros(*zeros.shape, value_dims))


def exponential_smoothing(
        scores: Tensor,
        v: Tensor,
        state: SmoothingState,
        *,
        decay: float = 1.,
        mask: Tensor | None = None) -> tuple[Tensor, SmoothingState]:
    """Take one sample of each stream, and attend to all so far.

    `Real-time Online Video Detection with Temporal Smoothing Transformers
    <https://arxiv.org/abs/2209.09236>`_, Eq. 6. The queries are those of all
    steps, so that a sample is known by its scores and its values.

    Differs from the paper and the released code: the weights are relative to
    the largest so far, which a step may raise. They cannot overflow, and do
    not vanish when the scores drift.

    Args:
        scores: Of the new sample, [*, N, G]:
            :func:`mmvidattn.ops.temporal_smoothing.sample_scores`.
        v: Its value, [*, G, E].
        state: What the samples before it left: :func:`smoothing_state`, or
            the result of the step before.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        mask: Bool, [*], False where a stream has no new sample; its state
            stays as it is. Each stream has had one.

    Returns:
        The attention [*, N, G, E] in the dtype of ``v``, and the new state.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    check_sample('exponential_smoothing', scores, v, decay)
    dtype = v.dtype
    with without_autocast(v.device.type):
        scores, v = at_least_float32(scores, v)
        aged = state.maximum + math.log(decay)
        maximum = torch.maximum(aged, scores.double())
        old = (aged - maximum).exp().to(v.dtype)
        new = (scores - maximum).exp().to(v.dtype)
        weight = old * state.weight + new
        total = old[..., None] * state.total + \
            new[..., None] * v.unsqueeze(-3)
        after = SmoothingState(maximum, weight, total)
        if mask is not None:
            mask = mask[..., None, None]
            after = SmoothingState(*(
                torch.where(mask if b.dim() == maximum.dim() else
                            mask[..., None], a, b)
                for a, b in zip(after, state)))
        y = after.total / after.weight[..., None]
    return y.to(dtype), after
