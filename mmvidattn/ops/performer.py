# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Performer: linear attention with random features."""
from typing import Literal, get_args

import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention, naive_linear_attention
from .precision import at_least_float32, without_autocast

Kind = Literal['favor', 'relu']
KINDS = get_args(Kind)


def random_projection(num_features: int,
                      head_dims: int,
                      generator: torch.Generator | None = None) -> Tensor:
    """Draw Gaussian vectors, which are orthogonal within each block of D.

    Each vector has the distribution of D independent standard normal
    numbers: a uniform direction and a length that is chi-distributed with D
    degrees of freedom.

    Args:
        num_features: Number of vectors m.
        head_dims: Width D of a vector.
        generator: Random generator. Defaults to torch's global generator.

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
    # Correct the signs of Q: LAPACK chooses them such that half of the
    # directions would never be drawn.
    q = q * r.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)
    lengths = torch.randn(
        num_features, head_dims, generator=generator).norm(
            dim=-1, keepdim=True)
    return lengths * q.flatten(0, 1)[:num_features]


def performer_features(x: Tensor,
                       projection: Tensor,
                       *,
                       kind: str = 'favor',
                       is_query: bool,
                       token_axes: tuple[int, ...] = (-3, ),
                       eps: float | None = None) -> Tensor:
    r"""Compute random features whose products estimate attention scores.

    'favor' estimates softmax attention. With x scaled by :math:`D^{-1/4}`:

    .. math:: m^{-1/2} (\exp(W x - |x|^2 / 2 - c) + eps)

    c is the maximum of W x: for queries over the features of the query, for
    keys over all keys and features of the head. Where :math:`|x|^2 / 2`
    exceeds about 14, which is -log eps, only eps remains and attention is
    uniform.

    'relu' computes :math:`\max(m^{-1/2} W x, 0) + eps` of the unscaled x.

    The computation is at least in float32, also under autocast.

    Args:
        x: Queries or keys, [*, N, G, D].
        projection: W from :func:`random_projection`, [m, D].
        kind: 'favor' or 'relu'. Defaults to 'favor'.
        is_query: True if ``x`` are queries.
        token_axes: Axes of the tokens of a sequence. Defaults to (-3, ), the
            axis N.
        eps: Added to each feature. Defaults to 1e-6 for 'favor' and 1e-3 for
            'relu'.

    Returns:
        Positive features, [*, N, G, m], in float32 or float64.

    Raises:
        ValueError: If ``kind`` is unknown or the widths differ.
    """
    if kind not in KINDS:
        raise ValueError(f'kind must be one of {KINDS}, got {kind!r}')
    if projection.dim() != 2 or projection.shape[-1] != x.shape[-1]:
        raise ValueError(
            f'projection must be [m, D] with D={x.shape[-1]} from x, got '
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
        largest = h.amax(-1 if is_query else (*token_axes, -1), keepdim=True)
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
    """Linear attention with random features.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        projection: W from :func:`random_projection`, [m, D].
        kind: See :func:`performer_features`. Defaults to 'favor'.
        order: See :func:`linear_attention`. Defaults to 'auto'.
        eps: Added to each feature, see :func:`performer_features`. The
            denominator is then positive and needs no eps.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not match, or ``kind`` or ``order`` is
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
    """Reference of :func:`performer_features` with the default ``eps``."""
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
    """Reference of :func:`performer_attention`."""
    q = naive_performer_features(q, projection, kind, is_query=True)
    k = naive_performer_features(k, projection, kind, is_query=False)
    return naive_linear_attention(q, k, v, eps=0.)
