# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Conversion of video tokens to sequences, and back."""
from torch import Tensor

PATTERNS = ('space', 'time', 'joint')


def to_sequences(x: Tensor, pattern: str) -> Tensor:
    """Split the tokens of clips into sequences that attend within themselves.

    Args:
        x: [B, T, H, W, *].
        pattern: Tokens of a sequence: 'space' (of one frame), 'time' (of one
            position) or 'joint' (of the clip).

    Returns:
        [B, T, H W, *], [B, H W, T, *] or [B, T H W, *].
    """
    if pattern == 'joint':
        return x.flatten(1, 3)
    x = x.flatten(2, 3)
    return x if pattern == 'space' else x.transpose(1, 2)


def from_sequences(x: Tensor, pattern: str,
                   grid: tuple[int, int, int]) -> Tensor:
    """Undo :func:`to_sequences`; ``grid`` is (T, H, W)."""
    if pattern == 'time':
        x = x.transpose(1, 2)
    lead = 2 if pattern == 'joint' else 3
    return x.reshape(x.shape[0], *grid, *x.shape[lead:])
