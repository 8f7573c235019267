# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""LARA, linear randomized attention.

A few samples represent all keys. The samples are drawn around landmarks, which
are means of neighboring tokens.
"""
import math

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .precision import at_least_float32, without_autocast


def landmark_grid(shape: tuple[int, ...],
                  num_landmarks: int) -> tuple[int, ...]:
    """Choose the number of cells along each axis of a grid of tokens.

    The total number of cells is at most ``num_landmarks``. Two axes get equal
    numbers of cells, as in the released code. For other numbers of axes, the
    axis with the longest cells repeatedly gets one more cell, as long as the
    total allows it. For example, 49 landmarks of 16 frames of 17x17 tokens
    give 3x4x4 cells. No axis has more cells than tokens.

    Raises:
        ValueError: If ``num_landmarks`` is not positive, or is not a square
            for two axes.
    """
    if num_landmarks < 1:
        raise ValueError(f'num_landmarks must be positive, got '
                         f'{num_landmarks}')
    # A single column of tokens, such as XViT's, counts as one axis.
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


def landmark_pool(x: Tensor, shape: tuple[int, ...],
                  grid: tuple[int, ...]) -> Tensor:
    """Average the tokens of each cell of a grid, at least in float32.

    With several axes, the cells are chosen as in adaptive average pooling:
    neighboring cells may overlap, so that every token is in a cell. With a
    single axis, the cells are disjoint segments, and the last segments may be
    longer by one token.

    Args:
        x: Tokens, [*, N, G, D].
        shape: Axes of the grid, whose product is N; tokens are in row-major
            order.
        grid: Number of cells along each axis; their product is C.

    Returns:
        [*, C, G, D], in the dtype of ``x``.

    Raises:
        ValueError: If ``shape`` and ``grid`` do not fit the tokens.
    """
    if (math.prod(shape) != x.shape[-3] or len(grid) != len(shape)
            or any(not 0 < num <= length for num, length in zip(grid, shape))):
        raise ValueError(f'shape {tuple(shape)} and grid {tuple(grid)} do '
                         f'not fit {x.shape[-3]} tokens')
    dtype = x.dtype
    x, = at_least_float32(x)
    y, rest = x, x.shape[-3:].numel()
    with without_autocast(x.device.type):
        for length, num in zip(shape, grid):
            rest //= length
            cells = _cells(length, num, len(grid) > 1, x)
            y = cells @ y.reshape(-1, length, rest)
    y = y.reshape(*x.shape[:-3], math.prod(grid), *x.shape[-2:])
    return y.to(dtype)


def _cells(length: int, num: int, overlap: bool, like: Tensor) -> Tensor:
    """Return the weight of each token of an axis in each cell, [num, length].
    """
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


def lara_attention(q: Tensor,
                   k: Tensor,
                   v: Tensor,
                   query_landmarks: Tensor,
                   key_landmarks: Tensor,
                   omega: Tensor | None = None) -> Tensor:
    r"""Estimate softmax attention by multiple importance sampling.

    There are C landmarks :math:`\mu_c`, each the sum of a query landmark and
    a key landmark, and one sample :math:`\omega_c` for each. With
    ``xi(x, w) = (w x - |x|^2 / 2) / sqrt(D)``,

    .. math::
        y_n &= \sum_c s_{nc} \sum_m softmax_m(xi(k_m, \omega_c)) v_m \\
        s_n &= softmax_c(\log a_{nc} + xi(q_n, \omega_c)
               + \log \sum_m \exp xi(k_m, \omega_c) - xi(\mu_c, \omega_c)) \\
        a_{nc} &= softmax_d(xi(\mu_d, \omega_c))_c + t_{nc} - mean_c t_{nc}

    where t is the softmax over the queries n of the products of query and
    query landmark, and a is at least 1e-8 (the weighting 'mis-opt' of the
    released code). The computation is at least in float32, also under
    autocast, because the bound 1e-8 would be zero in float16.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        query_landmarks: [*, C, G, D].
        key_landmarks: [*, C, G, D].
        omega: Samples, [*, C, G, D]. Defaults to the landmarks.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not match.
    """
    check_attention_inputs(
        'lara_attention', q, k, v, query_landmarks=query_landmarks,
        key_landmarks=key_landmarks,
        omega=key_landmarks if omega is None else omega)
    dtype = v.dtype
    q, k, v, query_landmarks, key_landmarks = (
        x.transpose(-3, -2) for x in at_least_float32(
            q, k, v, query_landmarks, key_landmarks))
    omega = query_landmarks + key_landmarks if omega is None else (
        omega.to(q.dtype).transpose(-3, -2))
    scale = q.shape[-1]**-0.5
    with without_autocast(q.device.type):
        of_keys = _log_kernel(omega, k)
        kv = of_keys.softmax(dim=-1) @ v
        densities = _log_kernel(omega, query_landmarks + key_landmarks)
        density = densities.diagonal(dim1=-2, dim2=-1)
        share = (density - densities.logsumexp(dim=-1)).exp().unsqueeze(-2)
        t = (scale * (q @ query_landmarks.mT)).softmax(dim=-2)
        a = share + t - t.mean(dim=-1, keepdim=True)
        # The term |q|^2 is the same for all landmarks and cancels.
        scores = scale * (q @ omega.mT) + a.clamp(min=1e-8).log()
        bias = of_keys.logsumexp(dim=-1) - density
        y = (scores + bias.unsqueeze(-2)).softmax(dim=-1) @ kv
    return y.transpose(-3, -2).to(dtype)


def _log_kernel(omega: Tensor, x: Tensor) -> Tensor:
    """Return xi of samples [*, C, D] and vectors [*, L, D]: [*, C, L]."""
    norm = x.square().sum(dim=-1).unsqueeze(-2)
    return x.shape[-1]**-0.5 * (omega @ x.mT - norm / 2)


def naive_lara_attention(q: Tensor,
                         k: Tensor,
                         v: Tensor,
                         query_landmarks: Tensor,
                         key_landmarks: Tensor,
                         omega: Tensor | None = None) -> Tensor:
    """Reference of :func:`lara_attention` without logarithms.

    Its exponentials may overflow.
    """
    mu = query_landmarks + key_landmarks
    omega = mu if omega is None else omega
    q, k, v, query_landmarks, mu, omega = (
        x.transpose(-3, -2) for x in (q, k, v, query_landmarks, mu, omega))
    scale = q.shape[-1]**-0.5

    def feature(x: Tensor) -> Tensor:
        norm = x.square().sum(dim=-1, keepdim=True)
        return torch.exp(scale * (x @ omega.mT - norm / 2))

    of_queries, of_keys = feature(q), feature(k)
    sums = of_keys.sum(dim=-2, keepdim=True)
    kv = (of_keys / sums).nan_to_num(0).mT @ v
    # Density of each landmark at each sample, [*, G, C, C].
    densities = feature(mu)
    mixture = densities.sum(dim=-2, keepdim=True)
    density = densities.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
    t = (scale * q @ query_landmarks.mT).softmax(dim=-2)
    a = density / mixture + t - t.mean(dim=-1, keepdim=True)
    a = a.clamp(min=1e-8)
    weights = a * of_queries * sums / density
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return (weights.nan_to_num(0) @ kv).transpose(-3, -2)


def naive_landmark_pool(x: Tensor, shape: tuple[int, ...],
                        grid: tuple[int, ...]) -> Tensor:
    """Reference of :func:`landmark_pool` for a single x [N, G, D]."""
    if len(grid) == 1:
        width, longer = divmod(len(x), grid[0])
        widths = [width] * (grid[0] - longer) + [width + 1] * longer
        return torch.stack([part.mean(dim=0) for part in x.split(widths)])
    pool = F.adaptive_avg_pool2d if len(grid) == 2 else F.adaptive_avg_pool3d
    y = pool(x.movedim(0, -1).unflatten(-1, shape), grid)
    return y.flatten(2).movedim(-1, 0)
