# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Bringing frames a step apart together, by a reshape and no gather.

The frames that are paired over the step S are those of a block of 2 S frames,
t and t + S: with the frame's index split into (block, half, place), to pair
is to bring the half next to the tokens.
"""
from torch import Tensor


def leap_step(num_frames: int, level: int) -> int:
    """The distance S = T / 2^R of paired frames, Eq. 15 of the paper.

    Args:
        num_frames: Frames T of a clip.
        level: Pyramid level R, from 1: half of the clip, a quarter, ...

    Raises:
        ValueError: If the frames do not fall into pairs at that distance.
    """
    step = num_frames // 2**level if level >= 1 else 0
    if step < 1 or num_frames % (2 * step):
        allowed = [
            r for r in range(1, num_frames.bit_length())
            if num_frames % (2 * (num_frames // 2**r)) == 0
        ]
        raise ValueError(
            f'{num_frames} frames form no pairs at the pyramid level {level}; '
            + (f'it may be one of {allowed}' if allowed else
               'their number must be even'))
    return step


def leap_pair(x: Tensor, level: int) -> Tensor:
    """Frames to pairs of frames.

    Args:
        x: Tokens of frames, [B, T, N, *].
        level: Pyramid level R.

    Returns:
        [B * T / 2, 2 N, *]: of each pair, in the order of its first frame,
        the tokens of the first and then those of the second.

    Raises:
        ValueError: If the frames do not fall into pairs.
    """
    step = leap_step(x.shape[1], level)
    x = x.unflatten(1, (-1, 2, step)).transpose(2, 3)
    return x.flatten(3, 4).flatten(0, 2)


def leap_unpair(x: Tensor, level: int, num_frames: int) -> Tensor:
    """The inverse of :func:`leap_pair`: [B * T / 2, 2 N, *] to [B, T, N, *].
    """
    step = leap_step(num_frames, level)
    x = x.unflatten(1, (2, -1))
    x = x.unflatten(0, (-1, num_frames // (2 * step), step))
    return x.transpose(2, 3).flatten(1, 3)
