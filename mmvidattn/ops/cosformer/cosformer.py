# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attention that favours the tokens nearby."""
import math

import torch
from torch import Tensor

from ..attention_inputs import check_attention_inputs
from ..linear_attention import linear_attention
from ..precision import at_least_float32


def cosformer_attention(q: Tensor,
                        k: Tensor,
                        v: Tensor,
                        *,
                        eps: float = 1e-6,
                        order: str = 'auto',
                        key_mask: Tensor | None = None) -> Tensor:
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
        key_mask: Bool, [*, M], True where a key counts. Where none does, the
            result is zero. A masked key keeps its place.

    Returns:
        [*, N, G, E], of the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit or ``order`` is unknown.
    """
    check_attention_inputs('cosformer_attention', q, k, v, key_mask)
    length = max(q.shape[-3], k.shape[-3])
    q, k = (_reweight(x, length) for x in at_least_float32(q, k))
    return linear_attention(
        q, k, v, order=order, eps=eps, clamp_eps=True, key_mask=key_mask)


def _reweight(x: Tensor, length: int) -> Tensor:
    """[*, N, G, D] to [*, N, G, 2 D]."""
    index = torch.arange(1, x.shape[-3] + 1, dtype=x.dtype, device=x.device)
    # The cosine as the sine of the complement: the last token's is then zero
    # and not, by rounding, negative.
    sin, cos = (
        torch.sin(math.pi / 2 / length * i)[:, None, None]
        for i in (index, length - index))
    return torch.cat([x * sin, x * cos], dim=-1)
