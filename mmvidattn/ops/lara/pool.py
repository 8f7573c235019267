# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Means of neighbouring tokens: the landmarks of LARA."""
import math

import torch
from torch import Tensor

from ..attention_inputs import zero_masked
from ..precision import at_least_float32, without_autocast


def landmark_grid(shape: tuple[int, ...],
                  num_landmarks: int) -> tuple[int, ...]:
    """Cells along each axis, ``num_landmarks`` of them or fewer in all.

    Two axes are cut into equally many cells, as in the released code. Other
    numbers of axes are cut one after another, each time the one with the
    longest cells, while there are no more cells than landmarks: 49 landmarks
    of 16 frames of 17x17 tokens are 3x4x4. No axis has more cells than
    tokens.

    Raises:
        ValueError: If ``num_landmarks`` is not positive, or is no square for
            two axes.
    """
    if num_landmarks < 1:
        raise ValueError(f'num_landmarks must be positive, got '
                         f'{num_landmarks}')
    # A column of tokens, as XViT's with its class token, has one axis.
    if len(shape) == 2 and min(shape) > 1:
        side = math.isqrt(num_landmarks)
        if side**2 != num_landmarks:
            raise ValueError('num_landmarks must be a square for tokens of '
                             f'two axes, got {num_landmarks}')
        return min(side, shape[0]), min(side, shape[1])
    grid = [1] * len(shape)
    while True:
        axis = max(range(len(shape)), key=lambda i: shape[i] / grid[i])
        grid[axis] += 1
        if math.prod(grid) > num_landmarks or grid[axis] > shape[axis]:
            grid[axis] -= 1
            return tuple(grid)


def landmark_pool(x: Tensor,
                  shape: tuple[int, ...],
                  grid: tuple[int, ...],
                  mask: Tensor | None = None) -> Tensor:
    """The mean token of each cell of a grid, formed in float32 at least.

    Cells of several axes are those of adaptive average pooling: as long as
    necessary to leave no token out, so that neighbours may overlap. Those of
    a single axis are disjoint segments, of which the last are longer by one.

    Args:
        x: Tokens, [*, N, G, D].
        shape: The axes that N is made of, in row-major order.
        grid: Cells C along each of them.
        mask: Bool, [*, N], True where a token counts. The mean of none is
            zero.

    Returns:
        [*, C, G, D], of the dtype of ``x``.

    Raises:
        ValueError: If ``shape`` and ``grid`` do not fit the tokens.
    """
    if (math.prod(shape) != x.shape[-3] or len(grid) != len(shape)
            or any(not 0 < num <= length for num, length in zip(grid, shape))):
        raise ValueError(f'shape {tuple(shape)} and grid {tuple(grid)} do '
                         f'not fit {x.shape[-3]} tokens')
    if mask is not None and (mask.dtype != torch.bool
                             or mask.shape != x.shape[:-2]):
        raise ValueError(f'mask must be bool of shape {tuple(x.shape[:-2])}, '
                         f'got {mask.dtype} of {tuple(mask.shape)}')
    dtype = x.dtype
    x, = at_least_float32(x)
    cells = [
        _cells(length, num, len(grid) > 1, x)
        for length, num in zip(shape, grid)
    ]
    with without_autocast(x.device.type):
        if mask is None:
            return _pool(x, cells).to(dtype)
        x, ones = zero_masked(mask, x, torch.ones_like(x[..., :1, :1]))
        y, weight = _pool(x, cells), _pool(ones, cells)
        # Where no token counts, both are zero.
        return (y / weight.masked_fill(weight == 0, 1)).to(dtype)


def _cells(length: int, num: int, overlap: bool, like: Tensor) -> Tensor:
    """Weights of the tokens of an axis in its cells, [num, length]."""
    cell = torch.arange(num + 1, device=like.device)
    if overlap:
        first = cell[:-1] * length // num
        last = -(-cell[1:] * length // num)
    else:
        shorter = num - length % num
        bounds = cell * (length // num) + (cell - shorter).clamp(min=0)
        first, last = bounds[:-1], bounds[1:]
    token = torch.arange(length, device=like.device)
    inside = (token >= first[:, None]) & (token < last[:, None])
    return inside.to(like.dtype) / (last - first)[:, None]


def _pool(x: Tensor, cells: list[Tensor]) -> Tensor:
    """[*, N, G, D] to [*, C, G, D], an axis at a time."""
    y, rest = x, x.shape[-3:].numel()
    for weights in cells:
        rest //= weights.shape[1]
        y = weights @ y.reshape(-1, weights.shape[1], rest)
    return y.reshape(*x.shape[:-3], -1, *x.shape[-2:])
