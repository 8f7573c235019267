# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention to the latest samples of a stream, each projected once."""
from typing import NamedTuple

import torch
from torch import Tensor

from ..precision import at_least_float32, without_autocast
from .exponential_smoothing import check_sample, sample_scores
from .temporal_smoothing import FLOOR


class WindowState(NamedTuple):
    """The latest M samples of a stream, in float32 or wider.

    Attributes:
        scores: Of each sample for each query, [*, N, G, M], in the places
            that they came to; -inf where none has come yet.
        values: Of each sample, [*, M, G, E].
        count: Samples so far, int64, [*].
    """
    scores: Tensor
    values: Tensor
    count: Tensor


def window_state(q: Tensor, value_dims: int, length: int) -> WindowState:
    """The state of a stream that nothing has come from.

    Args:
        q: The queries, [*, N, G, D].
        value_dims: Channels E of a head's values.
        length: Samples M that are kept.

    Raises:
        ValueError: If ``length`` is below 1.
    """
    if length < 1:
        raise ValueError(f'length must be at least 1, got {length}')
    q, = at_least_float32(q)
    lead, heads = q.shape[:-3], q.shape[-2]
    return WindowState(
        q.new_full((*q.shape[:-1], length), -torch.inf),
        q.new_zeros(*lead, length, heads, value_dims),
        torch.zeros(lead, dtype=torch.int64, device=q.device))


def window_smoothing(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        state: WindowState,
        *,
        decay: float = 1.,
        scale: float | None = None) -> tuple[Tensor, WindowState]:
    """Take one sample of each stream, and attend to the latest M.

    It equals :func:`mmvidattn.ops.temporal_smoothing_attention` of these
    samples at any age: with ``decay = 1`` the paper's FIFO attention (`Eq. 5
    <https://arxiv.org/abs/2209.09236>`_), with less a Laplace kernel that is
    cut off.

    Differs from the paper: nothing is subtracted from a sum that goes on, so
    that no error builds up and no maximum has to hold for ever. The sum of M
    values is the cost; keys and values are projected, and scored, once.

    Args:
        q: Queries, [*, N, G, D], the same in each step.
        k: Key of the new sample, [*, G, D].
        v: Its value, [*, G, E].
        state: Of :func:`window_state`, or of the step before.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        scale: Of the scores; ``D ** -0.5`` by default.

    Returns:
        The attention [*, N, G, E] in the dtype of ``v``, and the new state.

    Raises:
        ValueError: If the shapes do not fit, or ``decay`` is not in (0, 1].
    """
    check_sample('window_smoothing', q, k, v, decay)
    dtype, scale = v.dtype, q.shape[-1]**-0.5 if scale is None else scale
    with without_autocast(q.device.type):
        q, k, v = at_least_float32(q, k, v)
        length = state.scores.shape[-1]
        places = torch.arange(length, device=q.device)
        here = places == (state.count % length)[..., None]
        scores = torch.where(here[..., None, None, :],
                             sample_scores(q, k, scale)[..., None],
                             state.scores)
        values = torch.where(here[..., None, None], v.unsqueeze(-3),
                             state.values)
        logits = scores
        if decay != 1:
            age = (state.count[..., None] - places) % length
            kernel = (decay**age.to(torch.float64) + FLOOR).log()
            logits = scores + kernel.to(scores.dtype)[..., None, None, :]
        y = torch.einsum('...ngm,...mge->...nge', logits.softmax(dim=-1),
                         values)
    return y.to(dtype), WindowState(scores, values, state.count + 1)
