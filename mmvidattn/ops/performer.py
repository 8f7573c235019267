# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Performer: linear attention with random features."""
from typing import Literal, get_args

import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention, naive_linear_attention
from .precision import at_least_float32, without_autocast


def random_projection(num_features: int,
                      head_dims: int,
                      generator: torch.Generator | None = None) -> Tensor:
    """Normal vectors, orthogonal to one another in blocks of D.

    Each alone is distributed as a vector of D independent standard normal
    numbers: its direction is uniform, its length of the chi distribution
    with D degrees of freedom.

    Args:
        num_features: Vectors m.
        head_dims: Their width D.
        generator: Draws them; torch's own by default.

    Returns:
        [m, D].

    Raises:
        ValueError: If a size is not positive.
    """
    if num_features < 1 or head_dims < 1:
        raise ValueError('num_features and head_dims must be positive, got '
                         f'{num_features} and {head_dims}')
    num_blocks = -(-num_features // head_dims)
    normal = torch.randn(
        num_blocks, head_dims, head_dims, generator=generator)
    q, r = torch.linalg.qr(normal)
    # LAPACK chooses the signs of Q by those of its input, which leaves half
    # of the directions out.
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    lengths = torch.randn(
        num_features, head_dims, generator=generator).norm(
            dim=-1, keepdim=True)
    return lengths * q.flatten(0, 1)[:num_features]

Kind = Literal['favor', 'relu']
KINDS = get_args(Kind)


def performer_features(x: Tensor,
                       projection: Tensor,
                       *,
                       kind: str = 'favor',
                       is_query: bool,
                       eps: float | None = None) -> Tensor:
    r"""Random features whose products are attention's scores, on average.

    'favor' gives those of softmax, with x scaled by :math:`D^{-1/4}`:

    .. math:: m^{-1/2} (\exp(W x - |x|^2 / 2 - c) + eps)

    c is the maximum of W x, over the features of a query, and over all keys
    and features of a head. Where :math:`|x|^2 / 2` is above some 14, -log
    eps, only eps is left, and attention is uniform.

    'relu' gives :math:`\max(m^{-1/2} W x, 0) + eps`, with x as it is.

    Everything is formed in float32 at least, whatever autocast says.

    Args:
        x: Queries or keys, [*, N, G, D].
        projection: W, see :func:`random_projection`, [m, D].
        kind: 'favor' or 'relu'.
        is_query: Whether ``x`` are queries.
        eps: 1e-6 for 'favor' and 1e-3 for 'relu' by default.

    Returns:
        Positive features, [*, N, G, m], of float32 or wider.

    Raises:
        ValueError: If ``kind`` is unknown or the widths differ.
    """
    if kind not in KINDS:
        raise ValueError(f'kind must be one of {KINDS}, got {kind!r}')
    if projection.dim() != 2 or projection.shape[-1] != x.shape[-1]:
        raise ValueError(
            f'projection must be [m, D] with D={x.shape[-1]} as of x, got '
            f'{tuple(projection.shape)}')
    if eps is None:
        eps = 1e-6 if kind == 'favor' else 1e-3
    x, projection = at_least_float32(x, projection)
    m, D = projection.shape
    with without_autocast(x.device.type):
        if kind == 'relu':
            return (x @ projection.T * m**-0.5).relu() + eps
        x = x * D**-0.25
        h = x @ projection.T
        largest = h.amax(-1 if is_query else (-3, -1), keepdim=True)
        lengths = x.square().sum(dim=-1, keepdim=True) / 2
        return ((h - largest - lengths).exp() + eps) * m**-0.5


def performer_attention(q: Tensor,
                        k: Tensor,
                        v: Tensor,
                        projection: Tensor,
                        *,
                        kind: str = 'favor',
                        order: str = 'auto',
                        eps: float | None = None) -> Tensor:
    """:func:`linear_attention` of :func:`performer_features`.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        projection: See :func:`random_projection`, [m, D].
        kind: See :func:`performer_features`, also for ``eps``.
        order: As in :func:`linear_attention`.
        eps: Added to the features; the denominator, then positive, has none.

    Returns:
        [*, N, G, E], of the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit, or ``kind`` or ``order`` is
            unknown.
    """
    check_attention_inputs('performer_attention', q, k, v)
    q = performer_features(q, projection, kind=kind, is_query=True, eps=eps)
    k = performer_features(k, projection, kind=kind, is_query=False, eps=eps)
    return linear_attention(q, k, v, order=order, eps=0.)


def naive_performer_features(x: Tensor,
                             projection: Tensor,
                             kind: str,
                             is_query: bool) -> Tensor:
    """The reference: :func:`performer_features` with the default ``eps``."""
    m, D = projection.shape
    if kind == 'relu':
        return torch.relu(x @ projection.T / m**0.5) + 1e-3
    x = x / D**0.25
    h = x @ projection.T
    largest = h.amax(-1 if is_query else (-3, -1), keepdim=True)
    lengths = x.square().sum(-1, keepdim=True) / 2
    return (torch.exp(h - lengths - largest) + 1e-6) / m**0.5


def naive_performer_attention(q: Tensor,
                              k: Tensor,
                              v: Tensor,
                              projection: Tensor,
                              kind: str = 'favor') -> Tensor:
    """The reference: args and result as :func:`performer_attention`."""
    q = naive_performer_features(q, projection, kind, is_query=True)
    k = naive_performer_features(k, projection, kind, is_query=False)
    return naive_linear_attention(q, k, v, eps=0.)
