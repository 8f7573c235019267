# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: windows token by token."""
import itertools

import torch
from torch import Tensor

Size = tuple[int, int, int]


def _tokens(grid_shape: Size, window_size: Size):
    """Window, place in the window and place in the grid of each token."""
    counts = [-(-n // size) for n, size in zip(grid_shape, window_size)]
    places = list(itertools.product(*map(range, window_size)))
    for i, window in enumerate(itertools.product(*map(range, counts))):
        for j, place in enumerate(places):
            token = tuple(a * size + b for a, size, b in zip(
                window, window_size, place))
            if all(a < n for a, n in zip(token, grid_shape)):
                yield i, j, token


def naive_window_partition(
        x: Tensor, window_size: Size) -> tuple[Tensor, Tensor | None]:
    """Args and result as :func:`window_partition`."""
    t, h, w = window_size
    tokens = list(_tokens(x.shape[1:4], window_size))
    windows = x.new_zeros(len(x), tokens[-1][0] + 1, t * h * w, x.shape[-1])
    mask = torch.zeros(windows.shape[1:3], dtype=torch.bool, device=x.device)
    for i, j, (a, b, c) in tokens:
        windows[:, i, j] = x[:, a, b, c]
        mask[i, j] = True
    return windows, None if mask.all() else mask


def naive_window_merge(windows: Tensor, window_size: Size,
                       grid_shape: Size) -> Tensor:
    """Args and result as :func:`window_merge`."""
    x = windows.new_zeros(len(windows), *grid_shape, windows.shape[-1])
    for i, j, (a, b, c) in _tokens(grid_shape, window_size):
        x[:, a, b, c] = windows[:, i, j]
    return x
