# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Performer: linear attention with random features."""
import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention, naive_linear_attention
from .precision import at_least_float32, without_autocast


def random_projection(num_features: int, head_dims: int,
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
    normal = torch.randn(num_blocks, head_dims, head_dims, generator=generator)
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
                       is_query: bool,
                       token_axes: tuple[int, ...] = (-3, ),
                       eps: float = 1e-6) -> Tensor:
    r"""Compute random features whose products estimate softmax attention.

    With x scaled by :math:`D^{-1/4}`:

    .. math:: m^{-1/2} (\exp(W x - |x|^2 / 2 - c) + eps)

    c is the maximum of W x: for queries over the features of the query, for
    keys over all keys and features of the head. Where :math:`|x|^2 / 2`
    exceeds about 14, which is -log eps, only eps remains and attention is
    uniform. The computation is at least in float32, also under autocast.

    Args:
        x: Queries or keys, [*, N, G, D].
        projection: W from :func:`random_projection`, [m, D].
        is_query: True if ``x`` are queries.
        token_axes: Axes of the tokens of a sequence. Defaults to (-3, ), the
            axis N.
        eps: Added to each feature. Defaults to 1e-6.

    Returns:
        Positive features, [*, N, G, m], in float32 or float64.

    Raises:
        ValueError: If the widths differ.
    """
    if projection.dim() != 2 or projection.shape[-1] != x.shape[-1]:
        raise ValueError(
            f'projection must be [m, D] with D={x.shape[-1]} from x, got '
            f'{tuple(projection.shape)}')
    x, projection = at_least_float32(x, projection)
    m, D = projection.shape
    with without_autocast(x.device.type):
        x = x * D**-0.25
        h = x @ projection.T
        largest = h.amax(-1 if is_query else (*token_axes, -1), keepdim=True)
        lengths = x.square().sum(dim=-1, keepdim=True) / 2
        return ((h - largest - lengths).exp() + eps) * m**-0.5


def performer_attention(q: Tensor, k: Tensor, v: Tensor, projection: Tensor, *,
                        order: str = 'auto', eps: float = 1e-6) -> Tensor:
    """Linear attention with random features.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        projection: W from :func:`random_projection`, [m, D].
        order: See :func:`linear_attention`. Defaults to 'auto'.
        eps: Added to each feature. The denominator is then positive and needs
            no eps. Defaults to 1e-6.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not match or ``order`` is unknown.
    """
    check_attention_inputs('performer_attention', q, k, v)
    q = performer_features(q, projection, is_query=True, eps=eps)
    k = performer_features(k, projection, is_query=False, eps=eps)
    return linear_attention(q, k, v, order=order, eps=0.)


def naive_performer_features(x: Tensor, projection: Tensor,
                             is_query: bool) -> Tensor:
    """Reference of :func:`performer_features` with the default ``eps``."""
    m, D = projection.shape
    x = x / D**0.25
    h = x @ projection.T
    largest = h.amax(-1 if is_query else (-3, -1), keepdim=True)
    lengths = x.square().sum(-1, keepdim=True) / 2
    return (torch.exp(h - lengths - largest) + 1e-6) / m**0.5


def naive_performer_attention(q: Tensor, k: Tensor, v: Tensor,
                              projection: Tensor) -> Tensor:
    """Reference of :func:`performer_attention`."""
    q = naive_performer_features(q, projection, is_query=True)
    k = naive_performer_features(k, projection, is_query=False)
    return naive_linear_attention(q, k, v, eps=0.)
