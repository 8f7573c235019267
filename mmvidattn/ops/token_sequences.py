# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tokens of a clip as the sequences that attend within themselves."""
from torch import Tensor

PATTERNS = ('space', 'time', 'joint')


def to_sequences(x: Tensor, pattern: str) -> Tensor:
    """Tokens as sequences.

    Args:
        x: [B, T, H, W, *].
        pattern: Which tokens are a sequence: 'space' (those of a frame),
            'time' (those at a place), 'joint' (those of a clip).

    Returns:
        [B, T, H W, *], [B, H W, T, *] or [B, T H W, *].
    """
    if pattern == 'joint':
        return x.flatten(1, 3)
    x = x.flatten(2, 3)
    return x if pattern == 'space' else x.transpose(1, 2)


def from_sequences(x: Tensor, pattern: str,
                   grid: tuple[int, int, int]) -> Tensor:
    """The inverse of :func:`to_sequences`.

    Args:
        x: As returned there.
        pattern: As there.
        grid: (T, H, W).

    Returns:
        [B, T, H, W, *].
    """
    if pattern == 'time':
        x = x.transpose(1, 2)
    lead = 2 if pattern == 'joint' else 3
    return x.reshape(x.shape[0], *grid, *x.shape[lead:])
