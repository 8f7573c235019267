# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""cosFormer: linear attention that favors nearby tokens."""
import math

import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .linear_attention import linear_attention
from .precision import at_least_float32


def cosformer_attention(q: Tensor, k: Tensor, v: Tensor, *, eps: float = 1e-6,
                        order: str = 'auto') -> Tensor:
    r"""Linear attention whose scores decrease with the distance of tokens.

    .. math:: s_{ij} = q_i k_j^T \cos(\frac{\pi}{2} \frac{i - j}{L}),
              \quad y_i = \sum_j s_{ij} v_j / \max(\sum_j s_{ij}, eps)

    with L = max(N, M). Because the cosine of a difference is a sum of
    products, this equals :func:`linear_attention` with queries and keys of
    width 2 D. i and j count the tokens of a grid in row-major order.

    Args:
        q: Queries after a non-negative feature map, [*, N, G, D].
        k: Keys after the same feature map, [*, M, G, D].
        v: Values, [*, M, G, E].
        eps: Lower bound of the denominator; the result for an all-zero query
            is zero. Defaults to 1e-6.
        order: See :func:`linear_attention`. Defaults to 'auto'.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

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
    # Compute the cosine as the sine of the complement: the cosine of the last
    # token is then exactly zero instead of negative by rounding.
    sin, cos = (
        torch.sin(math.pi / 2 / length * i)[:, None, None]
        for i in (index, length - index))
    return torch.cat([x * sin, x * cos], dim=-1)


def naive_cosformer_attention(q: Tensor, k: Tensor, v: Tensor,
                              eps: float = 1e-6) -> Tensor:
    """Reference of :func:`cosformer_attention`: one cosine for each score."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    i = torch.arange(q.shape[-2], dtype=q.dtype)[:, None]
    j = torch.arange(k.shape[-2], dtype=q.dtype)
    angles = math.pi / 2 * (i - j) / max(len(i), len(j))
    scores = q @ k.transpose(-2, -1) * angles.cos()
    y = scores @ v / scores.sum(dim=-1, keepdim=True).clamp(min=eps)
    return y.transpose(-3, -2)
