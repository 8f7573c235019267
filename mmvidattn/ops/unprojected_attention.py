# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Softmax attention of few queries to unprojected tokens."""
import torch
from torch import Tensor

from .precision import at_least_float32


def few_queries(num_queries: int, num_tokens: int, num_heads: int,
                channels: int) -> bool:
    """Return True if :func:`unprojected_attention` multiplies less."""
    return num_queries * (channels +
                          num_heads * num_tokens) < channels * num_tokens


def unprojected_attention(q: Tensor,
                          x: Tensor,
                          weight: Tensor,
                          bias: Tensor,
                          k: Tensor,
                          v: Tensor,
                          score_bias: Tensor | None = None,
                          scale: float | None = None) -> Tensor:
    """Attend to tokens without projecting them to keys and values.

    ``q (W x)^T = (q W) x^T`` and ``a (W x) = W (a x)``: with few queries,
    projecting queries and results costs less than projecting the tokens.

    Args:
        q: Queries, [B, N, G, D].
        x: Tokens, [B, M, C].
        weight: Weight of the projection to keys and values, [2GD, C].
        bias: Bias of that projection, [2GD].
        k: Keys of L more tokens, already projected, [B, L, G, D].
        v: Values of the L tokens, [B, L, G, D].
        score_bias: Added to the scaled scores; its shape broadcasts to
            [B, G, N, M + L]. -inf masks a key; each query needs at least one
            finite entry.
        scale: Factor of the scores. Defaults to ``D ** -0.5``.

    Returns:
        [B, N, G, D].
    """
    M, (G, D) = x.shape[1], q.shape[-2:]
    key_weight, value_weight = weight.view(2, G, D, -1)
    key_bias, value_bias = bias.view(2, G, D)
    q = q * (D**-0.5 if scale is None else scale)
    scores = torch.einsum(
        'bngc,bmc->bgnm', torch.einsum('bngd,gdc->bngc', q, key_weight), x)
    scores = scores + torch.einsum('bngd,gd->bgn', q, key_bias)[..., None]
    scores = torch.cat([scores, torch.einsum('bngd,blgd->bgnl', q, k)], dim=-1)
    scores, = at_least_float32(scores)
    if score_bias is not None:
        scores = scores + score_bias
    weights = scores.softmax(dim=-1).to(q.dtype)
    of_x, of_v = weights.split([M, v.shape[1]], dim=-1)
    means = torch.einsum('bgnm,bmc->bngc', of_x, x)
    y = torch.einsum('bngc,gdc->bngd', means, value_weight)
    y = y + of_x.sum(dim=-1).transpose(1, 2)[..., None] * value_bias
    return y + torch.einsum('bgnl,blgd->bngd', of_v, v)
