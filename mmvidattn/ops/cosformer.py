# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""cosFormer: linear attention that favors the tokens nearby."""
import math

import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention
from .precision import at_least_float32


def cosformer_attention(q: Tensor,
                        k: Tensor,
                        v: Tensor,
                        *,
                        eps: float = 1e-6,
                        order: str = 'auto') -> Tensor:
    r"""Linear attention with scores reweighted by the distance of tokens.

    .. math:: s_{ij} = q_i k_j^T \cos(\frac{\pi}{2} \frac{i - j}{L}),
              \quad y_i = \sum_j s_{ij} v_j / \max(\sum_j s_{ij}, eps)

    with L = max(N, M). The cosine of a difference is a sum of products, so
    that this is :func:`linear_attention` of queries and keys of width 2 D.
    Tokens of a grid are counted in row-major order: i and j have no second
    axis.

    Args:
        q: Queries, already mapped to non-negative numbers, [*, N, G, D].
        k: Keys, mapped likewise, [*, M, G, D].
        v: Values, [*, M, G, E].
        eps: The least denominator: a query that is all zero gives zero.
        order: As in :func:`linear_attention`.

    Returns:
        [*, N, G, E], of the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit or ``order`` is unknown.
    """
    check_attention_inputs('cosformer_attention', q, k, v)
    length = max(q.shape[-3], k.shape[-3])
    q, k = (_reweight(x, length) for x in at_least_float32(q, k))
    return linear_attention(q, k, v, order=order, eps=eps, clamp_eps=True)


def _reweight(x: Tensor, length: int) -> Tensor:
    """[*, N, G, D] to [*, N, G, 2 D]."""
    index = torch.arange(1, x.shape[-3] + 1, dtype=x.dtype, device=x.device)
    # The cosine as the sine of the complement: the last token's is then zero
    # and not, by rounding, negative.
    sin, cos = (
        torch.sin(math.pi / 2 / length * i)[:, None, None]
        for i in (index, length - index))
    return torch.cat([x * sin, x * cos], dim=-1)


def naive_cosformer_attention(q: Tensor,
                              k: Tensor,
                              v: Tensor,
                              eps: float = 1e-6) -> Tensor:
    """The reference, with each score times its cosine.

    Args and result as :func:`cosformer_attention`.
    """
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    i = torch.arange(q.shape[-2], dtype=q.dtype)[:, None]
    j = torch.arange(k.shape[-2], dtype=q.dtype)
    angles = math.pi / 2 * (i - j) / max(len(i), len(j))
    scores = q @ k.transpose(-2, -1) * angles.cos()
    y = scores @ v / scores.sum(dim=-1, keepdim=True).clamp(min=eps)
    return y.transpose(-3, -2)
