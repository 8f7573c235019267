# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention to samples of a stream that are in its ring."""
import torch
from torch import Tensor

from ..precision import without_autocast
from .sample_ring import SampleRing, read_rows
from .temporal_smoothing import log_temporal_kernel


def window_smoothing(ring: SampleRing,
                     steps: Tensor,
                     *,
                     mask: Tensor | None = None,
                     decay: float = 1.,
                     position_scores: Tensor | None = None,
                     position_values: Tensor | None = None) -> Tensor:
    """Attend to a window of each stream.

    It equals :func:`mmvidattn.ops.temporal_smoothing_attention` of these
    samples at any age: with ``decay = 1`` the paper's FIFO attention (`Eq. 5
    <https://arxiv.org/abs/2209.09236>`_), with less a Laplace kernel that is
    cut off, and with positions LSTR's cross-attention, whose keys are affine
    in them.

    Differs from the paper: nothing is subtracted from a sum that goes on, so
    that no error builds up and no maximum has to hold for ever. The sum of K
    values is the cost; keys and values are projected, and scored, once.

    Args:
        ring: The latest M samples of each stream.
        steps: Which of them, oldest first, int64, [*, K].
        mask: Bool, [*, K], True where one counts; of each stream one does.
            Masked samples age all the same.
        decay: Weight of a sample relative to the next newer one, in (0, 1].
        position_scores: What its place in the window adds to the scores of a
            sample, [K, N, G].
        position_values: And to its values, [K, G, E].

    Returns:
        [*, N, G, E], in the dtype of the ring.

    Raises:
        ValueError: If the window is longer than the ring, or ``decay`` is not
            in (0, 1].
    """
    length = ring.scores.shape[-3]
    if steps.shape[-1] > length:
        raise ValueError(f'steps must be at most {length}, the samples that '
                         f'are kept, got {steps.shape[-1]}')
    with without_autocast(steps.device.type):
        logits, values = (read_rows(x, steps) for x in ring)
        if position_scores is not None:
            logits = logits + position_scores
        if position_values is not None:
            values = values + position_values
        # Of no effect if 1, but checked.
        kernel = log_temporal_kernel(steps.shape[-1], decay, steps.device)
        if decay != 1:
            logits = logits + kernel.to(logits.dtype)[:, None, None]
        if mask is not None:
            logits = logits.masked_fill(~mask[..., None, None], -torch.inf)
        return torch.einsum('...kng,...kge->...nge', logits.softmax(dim=-3),
                            values)
