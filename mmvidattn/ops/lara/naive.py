# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The references: densities as they are, without logarithms; loops."""
import itertools
import math

import torch
from torch import Tensor


def naive_lara_attention(q: Tensor,
                         k: Tensor,
                         v: Tensor,
                         query_landmarks: Tensor,
                         key_landmarks: Tensor,
                         omega: Tensor | None = None,
                         weighting: str = 'mis-opt',
                         alpha: float = 1.,
                         key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`lara_attention`; exponentials may overflow."""
    mu = query_landmarks + key_landmarks
    omega = mu if omega is None else omega
    q, k, v, query_landmarks, mu, omega = (
        x.transpose(-3, -2) for x in (q, k, v, query_landmarks, mu, omega))
    scale = q.shape[-1]**-0.5

    def feature(x: Tensor) -> Tensor:
        norm = x.square().sum(dim=-1, keepdim=True)
        return torch.exp(scale * (x @ omega.mT - norm / 2))

    of_queries, of_keys = feature(q), feature(k)
    if key_mask is not None:
        of_keys = of_keys * key_mask[..., None, :, None]
    sums = of_keys.sum(dim=-2, keepdim=True)
    kv = (of_keys / sums).nan_to_num(0).mT @ v
    # Of each landmark's density at each sample, [*, G, C, C].
    densities = feature(mu)
    mixture = densities.sum(dim=-2, keepdim=True)
    if weighting == 'mis-opt':
        density = densities.diagonal(dim1=-2, dim2=-1).unsqueeze(-2)
        t = (scale * q @ query_landmarks.mT).softmax(dim=-2)
        a = density / mixture + alpha * (t - t.mean(dim=-1, keepdim=True))
        a = a.clamp(min=1e-8)
    else:
        density = mixture
        a = (scale * q @ mu.mT).exp() if weighting == 'mis-biased' else 1.
    weights = a * of_queries * sums / density
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return (weights.nan_to_num(0) @ kv).transpose(-3, -2)


def naive_landmark_pool(x: Tensor,
                        shape: tuple[int, ...],
                        grid: tuple[int, ...],
                        mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`landmark_pool`, but without [*]."""
    x = x.unflatten(0, shape)
    mask = torch.ones(shape, dtype=torch.bool) if mask is None else \
        mask.unflatten(0, shape)

    def bounds(axis: int, cell: int) -> slice:
        length, cells = shape[axis], grid[axis]
        if len(grid) > 1:
            return slice(cell * length // cells,
                         math.ceil((cell + 1) * length / cells))
        longer = length % cells
        widths = [length // cells] * (cells - longer)
        widths += [length // cells + 1] * longer
        return slice(sum(widths[:cell]), sum(widths[:cell + 1]))

    pooled = []
    for cells in itertools.product(*map(range, grid)):
        where = tuple(bounds(*pair) for pair in enumerate(cells))
        tokens = x[where][mask[where]]  # [tokens that count, G, D]
        pooled.append(tokens.sum(dim=0) / max(len(tokens), 1))
    return torch.stack(pooled)
