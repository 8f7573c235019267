# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attention in whichever order of the product is cheaper."""
from typing import Literal, get_args

import torch
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .dispatch import needs_gradients
from .precision import at_least_float32, without_autocast

Order = Literal['auto', 'left', 'right']
ORDERS = get_args(Order)


def cheaper_order(num_queries: int, num_keys: int, head_dims: int,
                  value_dims: int) -> str:
    """The order of ``Q K^T V`` with fewer multiply-accumulates.

    For N queries, M keys, head width D and value width E, left,
    ``(Q K^T) V``, costs N M (D + E) and right, ``Q (K^T V)``,
    (N + M) D E; for self-attention with D = E right wins iff N > D.
    """
    left = num_queries * num_keys * (head_dims + value_dims)
    right = (num_queries + num_keys) * head_dims * value_dims
    return 'right' if right < left else 'left'


def linear_attention(q: Tensor,
                     k: Tensor,
                     v: Tensor,
                     *,
                     order: str = 'auto',
                     eps: float = 1e-6,
                     clamp_eps: bool = False) -> Tensor:
    r"""Kernelized attention, Eqs. 2 and 3 of the paper.

    .. math:: y_i = q_i \sum_j k_j^T v_j / (q_i \sum_j k_j^T + eps)

    The products and sums are formed in float32 when the inputs are of lower
    precision, whatever autocast says: over thousands of tokens ``K^T V``
    leaves the range of float16. In bfloat16, where it does not, the products
    are rounded to bfloat16 unless gradients are needed: terms of those of the
    queries cancel.

    Args:
        q: Queries, already mapped to non-negative numbers
            (:func:`mmvidattn.ops.feature_map`), [*, N, G, D].
        k: Keys, mapped likewise, [*, M, G, D].
        v: Values, [*, M, G, E].
        order: 'left' multiplies ``Q K^T`` first, 'right' ``K^T V``; the
            result is the same up to rounding. 'auto' takes the cheaper one.
        eps: Added to the denominator: a query that is all zero gives zero.
        clamp_eps: Whether ``eps`` bounds the denominator from below instead.

    Returns:
        [*, N, G, E], of the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not fit or ``order`` is unknown.
    """
    if order not in ORDERS:
        raise ValueError(f'order must be one of {ORDERS}, got {order!r}')
    check_attention_inputs('linear_attention', q, k, v)
    if order == 'auto':
        order = cheaper_order(q.shape[-3], k.shape[-3], k.shape[-1],
                              v.shape[-1])
    dtype = v.dtype
    if (not q.dtype == k.dtype == dtype == torch.bfloat16
            or needs_gradients(q, k, v)):
        q, k, v = at_least_float32(q, k, v)
    with without_autocast(q.device.type):
        q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
        if order == 'left':
            scores = q @ k.transpose(-2, -1)
            wide_scores, = at_least_float32(scores)
            denominator = wide_scores.sum(dim=-1, keepdim=True)
            numerator = scores @ v
        else:
            wide_q, wide_k = at_least_float32(q, k)
            denominator = wide_q @ wide_k.sum(dim=-2).unsqueeze(-1)
            numerator = q @ (k.transpose(-2, -1) @ v)
        if eps == 0:
            # A sum of nothing: its numerator is zero, and so is its result.
            denominator = denominator.masked_fill(denominator == 0, 1)
        elif clamp_eps:
            denominator = denominator.clamp_min(eps)
        else:
            denominator = denominator + eps
        y = numerator / denominator
    return y.transpose(-3, -2).to(dtype)


def naive_linear_attention(q: Tensor,
                           k: Tensor,
                           v: Tensor,
                           eps: float = 1e-6,
                           clamp_eps: bool = False) -> Tensor:
    """The reference, Eq. 3 of the paper: the attention matrix is formed.

    Args:
        q: [*, N, G, D].
        k: [*, M, G, D].
        v: [*, M, G, E].
        eps: Added to each row's sum.
        clamp_eps: Whether ``eps`` is the least sum instead.

    Returns:
        [*, N, G, E].
    """
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1)
    sums = scores.sum(dim=-1, keepdim=True)
    y = scores @ v / (sums.clamp(min=eps) if clamp_eps else sums + eps)
    return y.transpose(-3, -2)
