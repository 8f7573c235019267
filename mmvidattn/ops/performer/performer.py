# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attention with random features."""
import torch
from torch import Tensor

from ..attention_inputs import check_attention_inputs, zero_masked
from ..linear_attention import linear_attention
from ..precision import at_least_float32, without_autocast

KINDS = ('favor', 'relu')


def performer_features(x: Tensor,
                       projection: Tensor,
                       *,
                       kind: str = 'favor',
                       is_query: bool,
                       eps: float | None = None,
                       key_mask: Tensor | None = None) -> Tensor:
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
        key_mask: Bool, [*, N], True where a key counts: the others do not
            enter the maximum.

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
    x, = zero_masked(key_mask, x)
    m, D = projection.shape
    with without_autocast(x.device.type):
        if kind == 'relu':
            return (x @ projection.T * m**-0.5).relu() + eps
        x = x * D**-0.25
        h = x @ projection.T
        if key_mask is not None:
            h = h.masked_fill(~key_mask[..., None, None],
                              torch.finfo(h.dtype).min)
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
                        eps: float | None = None,
                        key_mask: Tensor | None = None) -> Tensor:
    """:func:`linear_attention` of :func:`performer_features`.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        projection: See :func:`random_projection`, [m, D].
        kind: See :func:`performer_features`, also for ``eps``.
        order: As in :func:`linear_attention`.
        eps: Added to the features; the denominator, then positive, has none.
        key_mask: Bool, [*, M], True where a key counts. Where none does, the
            result is zero.

    Returns:
        [*, N, G, E], of the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit, or ``kind`` or ``order`` is
            unknown.
    """
    check_attention_inputs('performer_attention', q, k, v, key_mask)
    q = performer_features(q, projection, kind=kind, is_query=True, eps=eps)
    k = performer_features(
        k, projection, kind=kind, is_query=False, eps=eps, key_mask=key_mask)
    return linear_attention(q, k, v, order=order, eps=0., key_mask=key_mask)
