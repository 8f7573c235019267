# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Temporal smoothing of streams, one sample at a time.

All steps have the same queries, so the scores and values of a sample are
computed once. :func:`window_smoothing` reads the latest samples,
:func:`exponential_smoothing` sums over all of them.
"""
import math
from typing import NamedTuple

import torch
from torch import Tensor

from .precision import at_least_float32, without_autocast
from .softmax_attention import naive_softmax_attention
from .temporal_smoothing import log_temporal_kernel


def sample_scores(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    """Compute the scores of keys for constant queries.

    Args:
        q: Queries, [N, G, D].
        k: Keys, [*, G, D].
        scale: Factor of the scores. Defaults to ``D ** -0.5``.

    Returns:
        [*, N, G], in float32 or float64.

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


def window_smoothing(scores: Tensor, v: Tensor, *, mask: Tensor | None = None,
                     decay: float = 1.) -> Tensor:
    """Attend to a window of samples.

    Equals :func:`mmvidattn.ops.temporal_smoothing_attention` of these samples.
    With ``decay = 1``, it is the FIFO attention of `TeSTra
    <https://arxiv.org/abs/2209.09236>`_, Eq. 5; with ``decay < 1``, a
    truncated Laplace kernel. If the scores and values include positions, it is
    the cross-attention of LSTR.

    Differs from the paper: each step sums over the window instead of
    subtracting from a running sum. Errors therefore do not accumulate, and no
    maximum of all steps is needed. The extra cost is the sum of K values; keys
    and values are still projected and scored only once.

    Args:
        scores: Scores of the samples, oldest first, [*, K, N, G], in float32
            or float64.
        v: Values of the samples, [*, K, G, E], in float32 or float64.
        mask: Bool, [*, K], False for masked samples, whose ages still count.
            Each stream needs an unmasked sample.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
            Defaults to 1.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    _check_samples('window_smoothing', scores, v, decay)
    with without_autocast(scores.device.type):
        if decay != 1:
            kernel = log_temporal_kernel(
                scores.shape[-3], decay, scores.device, scores.dtype)
            scores = scores + kernel[:, None, None]
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None, None], -torch.inf)
        return torch.einsum('...kng,...kge->...nge', scores.softmax(dim=-3), v)


class SmoothingState(NamedTuple):
    """State of exponential smoothing of a stream, in float64.

    In float32 the rounding errors of millions of steps would accumulate, and
    after 2^24 samples of equal weight a new sample would no longer change the
    sums.

    Attributes:
        maximum: Largest decayed score until now, [*, N, G]; -inf before the
            first sample.
        weight: Sum of the decayed weights, relative to ``maximum``,
            [*, N, G].
        total: Sum of the values with these weights, [*, N, G, E].
    """
    maximum: Tensor
    weight: Tensor
    total: Tensor


def smoothing_state(scores: Tensor, value_dims: int) -> SmoothingState:
    """Return the first state for scores [*, N, G] and E value channels."""
    zeros = scores.new_zeros(scores.shape, dtype=torch.float64)
    return SmoothingState(
        torch.full_like(zeros, -torch.inf), zeros,
        zeros.new_zeros(*zeros.shape, value_dims))


def exponential_smoothing(
        scores: Tensor,
        v: Tensor,
        state: SmoothingState,
        *,
        decay: float = 1.,
        times: Tensor | None = None) -> tuple[Tensor, SmoothingState]:
    """Add one sample to each stream, and attend to all samples until now.

    This is Eq. 6 of `Real-time Online Video Detection with Temporal Smoothing
    Transformers <https://arxiv.org/abs/2209.09236>`_.

    Differs from the paper and the released code: the weights are relative to
    the largest weight until now, which each step updates. The weights
    therefore cannot overflow, and do not vanish if the scores drift.

    Args:
        scores: :func:`sample_scores` of the new sample, [*, N, G].
        v: Value of the new sample, [*, G, E].
        state: State of the earlier samples, from :func:`smoothing_state` or
            the previous step.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
            Defaults to 1.
        times: Number of consecutive times that the sample is added, int64 [*].
            Defaults to 1. 0 keeps the state of a stream, which must then have
            a sample.

    Returns:
        The attention [*, N, G, E] in the dtype of ``v``, and the new state.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    _check_samples('exponential_smoothing', scores, v, decay)
    dtype = v.dtype
    with without_autocast(v.device.type):
        scores, v = scores.double(), v.double()
        repeats, log_decay = 1., math.log(decay)
        if times is not None:
            times = times[..., None, None].double()
            # Sum of the weights decay ** age of the repeated sample.
            repeats = times if decay == 1 else (
                (1 - decay**times) / (1 - decay))
            log_decay = log_decay * times
        aged = state.maximum + log_decay
        maximum = torch.maximum(aged, scores)
        old = (aged - maximum).exp()
        new = repeats * (scores - maximum).exp()
        new_state = SmoothingState(
            maximum, old * state.weight + new,
            old[..., None] * state.total +
            new[..., None] * v.unsqueeze(-3))
        if times is not None:
            changed = times > 0
            new_state = SmoothingState(*(
                a.where(changed if a.dim() == changed.dim() else
                        changed[..., None], b)
                for a, b in zip(new_state, state)))
        y = new_state.total / new_state.weight[..., None]
    return y.to(dtype), new_state


def _check_samples(name: str, scores: Tensor, v: Tensor,
                   decay: float) -> None:
    if scores.dim() < 2 or scores.shape[:-2] != v.shape[:-2] or (
            scores.shape[-1:] != v.shape[-2:-1]):
        raise ValueError(
            f'{name} takes scores [*, N, G] and v [*, G, E], got '
            f'{tuple(scores.shape)} and {tuple(v.shape)}')
    if not 0 < decay <= 1:
        raise ValueError(f'decay must be in (0, 1], got {decay}')


def naive_exponential_smoothing(q: Tensor, k: Tensor, v: Tensor,
                                decay: float = 1.) -> Tensor:
    """Reference: compute each step from all earlier samples.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys of the stream, [*, T, G, D].
        v: Values of the stream, [*, T, G, E].
        decay: Weight of a sample relative to the next newer one, in (0, 1].

    Returns:
        [T, *, N, G, E].
    """
    age = torch.arange(k.shape[-3] - 1, -1, -1, dtype=q.dtype)
    return torch.stack([
        naive_softmax_attention(
            q, k[..., :t, :, :], v[..., :t, :, :],
            bias=age[-t:] * math.log(decay))
        for t in range(1, len(age) + 1)])
