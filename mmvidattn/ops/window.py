# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attention windows of a grid of tokens, for any sizes of both."""
import torch
import torch.nn.functional as F
from torch import Tensor

from .sizes import is_any_size, num_blocks

Size = tuple[int, int, int]


def fit_window(window_size: Size, grid_shape: Size) -> Size:
    """Clip the window size to the grid.

    A larger window would only add masked padding, so attention does not
    change. Along axes of symbolic size the window size is kept.
    """
    return tuple(w if is_any_size(n) else min(w, n)
                 for w, n in zip(window_size, grid_shape))


def window_partition(x: Tensor,
                     window_size: Size) -> tuple[Tensor, Tensor | None]:
    """Split a grid of tokens into windows that do not overlap.

    Incomplete windows at the end of an axis are padded with zeros.

    Args:
        x: Tokens, [B, T, H, W, C].
        window_size: Frames, rows and columns (t, h, w) of a window.

    Returns:
        The windows [B, S, N, C], and a bool mask [S, N] that is True for
        tokens and False for padding, or None if there is no padding. The S
        windows, and the N = t h w tokens of each, are in row-major order.

    Raises:
        ValueError: If ``x`` is not 5-dimensional or ``window_size`` is not
            three positive numbers.
    """
    if x.dim() != 5:
        raise ValueError('window_partition takes tokens [B, T, H, W, C], got '
                         f'{tuple(x.shape)}')
    if len(window_size) != 3 or min(window_size) < 1:
        raise ValueError('window_size must be three positive numbers, got '
                         f'{tuple(window_size)}')
    grid_shape = x.shape[1:4]
    t, h, w = window_size
    counts = _counts(grid_shape, window_size)
    extra = [count * size - n for count, size, n in zip(
        counts, window_size, grid_shape)]
    mask = None
    if any(map(is_any_size, grid_shape)) or any(extra):
        padding = 0, 0, 0, extra[2], 0, extra[1], 0, extra[0]
        mask = F.pad(x.new_ones(1, *grid_shape, 1), padding) > 0
        mask = _cut(mask, counts, (t, h, w))[0, ..., 0]
        x = F.pad(x, padding)
    return _cut(x, counts, (t, h, w)), mask


def window_merge(windows: Tensor, window_size: Size,
                 grid_shape: Size) -> Tensor:
    """Undo :func:`window_partition`, and remove the padding.

    Args:
        windows: [B, S, N, C].
        window_size: Frames, rows and columns (t, h, w) of a window.
        grid_shape: Frames, rows and columns (T, H, W) of the grid.

    Returns:
        [B, T, H, W, C].

    Raises:
        ValueError: If the shape of ``windows`` does not fit the sizes.
    """
    counts = _counts(grid_shape, window_size)
    t, h, w = window_size
    if windows.dim() != 4 or windows.shape[1:3] != (
            counts[0] * counts[1] * counts[2], t * h * w):
        raise ValueError(
            f'windows must be [B, {counts[0] * counts[1] * counts[2]}, '
            f'{t * h * w}, C] for window_size {tuple(window_size)} and '
            f'grid_shape {tuple(grid_shape)}, got {tuple(windows.shape)}')
    x = windows.unflatten(1, counts).unflatten(4, (t, h, w))
    x = x.permute(0, 1, 4, 2, 5, 3, 6, 7)
    x = x.flatten(5, 6).flatten(3, 4).flatten(1, 2)
    T, H, W = grid_shape
    return x[:, :T, :H, :W]


def _counts(grid_shape: Size, window_size: Size) -> Size:
    """Return the number of windows along each axis."""
    return tuple(map(num_blocks, grid_shape, window_size))


def _cut(x: Tensor, counts: Size, window_size: Size) -> Tensor:
    for axis in (2, 1, 0):
        x = x.unflatten(axis + 1, (counts[axis], window_size[axis]))
    x = x.permute(0, 1, 3, 5, 2, 4, 6, 7)
    return x.flatten(4, 6).flatten(1, 3)


def naive_window_partition(
        x: Tensor, window_size: Size) -> tuple[Tensor, Tensor | None]:
    """Reference of :func:`window_partition`, which slides windows."""

    def cut(x: Tensor) -> Tensor:
        pad = [-n % size for n, size in zip(x.shape[1:4], window_size)]
        x = F.pad(x, (0, 0, 0, pad[2], 0, pad[1], 0, pad[0]))
        for axis, size in enumerate(window_size, 1):
            x = x.unfold(axis, size, size)
        return x.flatten(5).flatten(1, 3).transpose(2, 3)

    mask = cut(torch.ones_like(x[:1, ..., :1]))[0, ..., 0] > 0
    return cut(x), None if mask.all() else mask
