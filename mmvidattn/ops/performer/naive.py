# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: features by their formula, the attention matrix formed."""
import torch
from torch import Tensor

from ..linear_attention import naive_linear_attention


def naive_performer_features(x: Tensor,
                             projection: Tensor,
                             kind: str,
                             is_query: bool,
                             key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`performer_features`, ``eps`` its default."""
    m, D = projection.shape
    if kind == 'relu':
        return torch.relu(x @ projection.T / m**0.5) + 1e-3
    x = x / D**0.25
    h = x @ projection.T
    if is_query:
        largest = h.amax(-1, keepdim=True)
    elif key_mask is None:
        largest = h.amax((-3, -1), keepdim=True)
    else:
        counted = h.masked_fill(~key_mask[..., None, None], -torch.inf)
        largest = counted.amax((-3, -1), keepdim=True)
    lengths = x.square().sum(-1, keepdim=True) / 2
    return (torch.exp(h - lengths - largest) + 1e-6) / m**0.5


def naive_performer_attention(q: Tensor,
                              k: Tensor,
                              v: Tensor,
                              projection: Tensor,
                              kind: str = 'favor',
                              key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`performer_attention`; some key must count."""
    q = naive_performer_features(q, projection, kind, is_query=True)
    k = naive_performer_features(k, projection, kind, False, key_mask)
    return naive_linear_attention(q, k, v, eps=0., key_mask=key_mask)
