# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Leap attention: frames at a fixed distance attend to each other.

Frames t and t + S of each block of 2 S frames form a pair. The frame index is
split into (block, half, place). Pairing moves the axis of the half next to the
tokens, by a transpose and a reshape instead of a gather.
"""
import torch
from torch import Tensor

from .softmax_attention import naive_softmax_attention


def leap_step(num_frames: int, level: int) -> int:
    """Return the distance S = T / 2^R of paired frames.

    This is Eq. 15 of `LAPS <https://arxiv.org/abs/2207.05526>`_.

    Args:
        num_frames: Clip length T.
        level: Pyramid level R. The distance is half of the clip for 1, a
            quarter for 2, and so on.

    Raises:
        ValueError: If not every frame has a partner at that distance.
    """
    step = num_frames // 2**level if level >= 1 else 0
    if step < 1 or num_frames % (2 * step):
        allowed = [
            r for r in range(1, num_frames.bit_length())
            if num_frames % (2 * (num_frames // 2**r)) == 0
        ]
        raise ValueError(
            f'{num_frames} frames form no pairs at the pyramid level {level}; '
            + (f'the level must be one of {allowed}' if allowed else
               'num_frames must be even'))
    return step


def leap_pair(x: Tensor, level: int) -> Tensor:
    """Join paired frames into sequences.

    Args:
        x: Tokens of frames, [B, T, N, *].
        level: Pyramid level R.

    Returns:
        [B * T / 2, 2 N, *]: for each pair, in the order of its first frame,
        the tokens of the first frame, then the tokens of the second.

    Raises:
        ValueError: If not every frame has a partner.
    """
    step = leap_step(x.shape[1], level)
    x = x.unflatten(1, (-1, 2, step)).transpose(2, 3)
    return x.flatten(3, 4).flatten(0, 2)


def leap_unpair(x: Tensor, level: int, num_frames: int) -> Tensor:
    """Undo :func:`leap_pair`: [B * T / 2, 2 N, *] to [B, T, N, *]."""
    step = leap_step(num_frames, level)
    x = x.unflatten(1, (2, -1))
    x = x.unflatten(0, (-1, num_frames // (2 * step), step))
    return x.transpose(2, 3).flatten(1, 3)


def naive_leap_attention(q: Tensor, k: Tensor, v: Tensor,
                         level: int) -> Tensor:
    """Reference of leap attention: Algorithm 1 of the LAPS paper."""
    N, step = q.shape[2], q.shape[1] // 2**level
    out = q.new_empty(*q.shape[:-1], v.shape[-1])
    for a in range(q.shape[1]):
        b = a + step
        if a // step % 2 == 0:
            pair = naive_softmax_attention(
                *(torch.cat([x[:, a], x[:, b]], dim=1) for x in (q, k, v)))
            out[:, a], out[:, b] = pair[:, :N], pair[:, N:]
    return out
