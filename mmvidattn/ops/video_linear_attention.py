# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attention between the two projections of a layer, in one op."""
from typing import NamedTuple

from torch import Tensor

from .dispatch import dispatched
from .feature_fixation import Gate, fixate
from .feature_maps import feature_map
from .linear_attention import linear_attention
from .shift import Fold, neighbor_shift
from .token_sequences import PATTERNS, from_sequences, to_sequences


class Options(NamedTuple):
    """Options of :func:`video_linear_attention`.

    Attributes:
        num_heads: Heads G.
        pattern: 'space', 'time' or 'joint', see
            :func:`mmvidattn.ops.token_sequences.to_sequences`.
        folds: Shift from :func:`mmvidattn.ops.shift_plan`.
        segment_frames: See :func:`mmvidattn.ops.neighbor_shift`.
        kernel: Feature map of :func:`mmvidattn.ops.feature_map`.
        offset: Offset of the feature map.
        gate: Gate of feature fixation, or None.
        order: Order of :func:`mmvidattn.ops.linear_attention`.
        eps: Added to the denominator.
    """
    num_heads: int
    pattern: str = 'joint'
    folds: tuple[Fold, ...] = ()
    segment_frames: int | None = None
    kernel: str = 'relu'
    offset: float = 0.
    gate: Gate | None = None
    order: str = 'auto'
    eps: float = 1e-6


@dispatched
def video_linear_attention(qkv: Tensor, options: Options) -> Tensor:
    """Attend linearly within a clip, with shift and feature fixation.

    Shifts channels of keys and values, maps and reweights queries and keys,
    and applies :func:`mmvidattn.ops.linear_attention`, as in `Linear Video
    Transformer with Feature Fixation <https://arxiv.org/abs/2210.08164>`_,
    Secs. 4.1 to 4.3.

    Args:
        qkv: Queries, keys and values of G heads of width D = C / G,
            concatenated, [B, T, H, W, 3 C].
        options: Heads, pattern, shift, feature map, gate and order.

    Returns:
        [B, T, H, W, C].

    Raises:
        ValueError: If the heads do not divide the channels, or the pattern
            is unknown.
    """
    (num_heads, pattern, folds, segment_frames, kernel, offset, gate, order,
     eps) = options
    C = qkv.shape[-1]
    if qkv.dim() != 5 or C % (3 * num_heads):
        raise ValueError(
            'video_linear_attention takes qkv [B, T, H, W, 3 C], C a '
            f'multiple of num_heads={num_heads}, got {tuple(qkv.shape)}')
    if pattern not in PATTERNS:
        raise ValueError(
            f'pattern must be one of {PATTERNS}, got {pattern!r}')
    q, kv = qkv.unflatten(-1, (3, C // 3)).split((1, 2), dim=-2)
    k, v = neighbor_shift(kv, folds, segment_frames).unbind(-2)
    q, k, v = (x.unflatten(-1, (num_heads, -1))
               for x in (q.squeeze(-2), k, v))
    q, k = feature_map(q, kernel, offset), feature_map(k, kernel, offset)
    if gate is not None:
        q, k = fixate(q, k, v, gate)
    y = linear_attention(
        *(to_sequences(x, pattern) for x in (q, k, v)), order=order, eps=eps)
    return from_sequences(y, pattern, tuple(qkv.shape[1:4])).flatten(-2)
