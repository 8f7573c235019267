# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Temporal smoothing of streams, a sample at a time.

The queries are those of all steps, so that a sample is known by its scores and
its values, which are computed once: :func:`window_smoothing` reads the latest
ones, :func:`exponential_smoothing` sums up all of them.
"""
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ..precision import at_least_float32, without_autocast
from .temporal_smoothing import log_temporal_kernel


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


def window_smoothing(scores: Tensor,
                     v: Tensor,
                     *,
                     mask: Tensor | None = None,
                     decay: float = 1.) -> Tensor:
    """Attend to a window of samples.

    It equals :func:`mmvidattn.ops.temporal_smoothing_attention` of these
    samples: with ``decay = 1`` the paper's FIFO attention (`Eq. 5
    <https://arxiv.org/abs/2209.09236>`_), with less a Laplace kernel that is
    cut off, and with what positions add to scores and values LSTR's
    cross-attention.

    Differs from the paper: nothing is subtracted from a running sum, so
    that no error builds up and no maximum has to hold for ever. The sum of K
    values is the cost; keys and values are projected, and scored, once.

    Args:
        scores: Of the samples, oldest first, [*, K, N, G], in float32 or
            wider.
        v: Their values, [*, K, G, E], likewise.
        mask: Bool, [*, K], True where one counts; of each stream one does.
            Masked samples age all the same.
        decay: Weight of a sample relative to the next newer one, in (0, 1].

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    _check_samples('window_smoothing', scores, v, decay)
    with without_autocast(scores.device.type):
        if decay != 1:
            kernel = log_temporal_kernel(
                scores.shape[-3], decay, scores.device)
            scores = scores + kernel.to(scores.dtype)[:, None, None]
        if mask is not None:
            scores = scores.masked_fill(~mask[..., None, None], -torch.inf)
        return torch.einsum('...kng,...kge->...nge', scores.softmax(dim=-3), v)


class SmoothingState(NamedTuple):
    """State of exponential smoothing of a stream, in float64.

    It ages and grows at each step: in float32 the errors of millions of steps
    add up, and beyond 2^24 samples of one weight another one counts nothing.

    Attributes:
        maximum: The largest decayed score so far, [*, N, G]; -inf of nothing.
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
    """Take one sample of each stream, and attend to all so far.

    `Real-time Online Video Detection with Temporal Smoothing Transformers
    <https://arxiv.org/abs/2209.09236>`_, Eq. 6.

    Differs from the paper and the released code: the weights are relative to
    the largest so far, which a step may raise. They cannot overflow, and do
    not vanish when the scores drift.

    Args:
        scores: Of the new sample, [*, N, G]: :func:`sample_scores`.
        v: Its value, [*, G, E].
        state: Of the samples before it: :func:`smoothing_state`, or the
            result of the step before.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        times: How often the sample comes, one time after the other; int64,
            [*]; once by default. 0 leaves a stream's state, in which there
            must be a sample, as it is.

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
            # The sum of the weights decay ** age.
            repeats = times if decay == 1 else (
                (1 - decay**times) / (1 - decay))
            log_decay = log_decay * times
        aged = state.maximum + log_decay
        maximum = torch.maximum(aged, scores)
        old = (aged - maximum).exp()
        new = repeats * (scores - maximum).exp()
        after = SmoothingState(
            maximum, old * state.weight + new,
            old[..., None] * state.total +
            new[..., None] * v.unsqueeze(-3))
        if times is not None:
            came = times > 0
            after = SmoothingState(*(
                a.where(came if a.dim() == came.dim() else came[..., None], b)
                for a, b in zip(after, state)))
        y = after.total / after.weight[..., None]
    return y.to(dtype), after


def _check_samples(name: str, scores: Tensor, v: Tensor,
                   decay: float) -> None:
    if scores.dim() < 2 or scores.shape[:-2] != v.shape[:-2] or (
            scores.shape[-1:] != v.shape[-2:-1]):
        raise ValueError(
            f'{name} takes scores [*, N, G] and v [*, G, E], got '
            f'{tuple(scores.shape)} and {tuple(v.shape)}')
    if not 0 < decay <= 1:
        raise ValueError(f'decay must be in (0, 1], got {decay}')


def naive_exponential_smoothing(q: Tensor,
                                k: Tensor,
                                v: Tensor,
                                *,
                                decay: float = 1.,
                                scale: float | None = None,
                                length: int | None = None) -> Tensor:
    """Every step of a stream, each from its whole past, written out.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys of the stream, [*, T, G, D].
        v: Values of the stream, [*, T, G, E].
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        scale: Of the scores; ``D ** -0.5`` by default.
        length: How many samples back a step looks; None for all.

    Returns:
        [T, *, N, G, E].
    """
    steps = []
    scale = q.shape[-1]**-0.5 if scale is None else scale
    for t in range(1, k.shape[-3] + 1):
        first = 0 if length is None else max(0, t - length)
        past, values = k[..., first:t, :, :], v[..., first:t, :, :]
        age = torch.arange(t - first - 1, -1, -1, dtype=q.dtype)
        # Eq. 6 has no floor; that of a window is the released code's.
        floor = 0 if length is None else 1e-10
        kernel = (decay**age + floor).log()
        scores = torch.einsum('...mgd,...ngd->...gmn', q, past) * scale
        weights = (scores + kernel).softmax(dim=-1)
        steps.append(torch.einsum('...gmn,...ngd->...mgd', weights, values))
    return torch.stack(steps)
