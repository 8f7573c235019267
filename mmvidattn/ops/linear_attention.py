# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attention, multiplied in the cheaper order, and its feature maps."""
from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from .attention_inputs import check_attention_inputs
from .precision import at_least_float32, needs_gradients, without_autocast

Order = Literal['auto', 'left', 'right']
ORDERS = get_args(Order)
FeatureMap = Literal['relu', 'elu+1', 'sigmoid', 'identity']
FEATURE_MAPS = get_args(FeatureMap)


def feature_map(x: Tensor, kind: str = 'relu', offset: float = 0.) -> Tensor:
    """Apply a kernel function of linear attention, Sec. 3.2 and Table 5.

    Args:
        x: Queries or keys, of any shape.
        kind: 'relu', 'elu+1' (Linear Transformer), 'sigmoid' or 'identity'.
            Defaults to 'relu'.
        offset: Constant added to the result. The released code adds
            ``D ** -0.5`` (D is the head width) to ReLU, so that no row of Q
            or K is all zero; the paper's equations do not. Defaults to 0.

    Returns:
        Mapped tensor, in the shape of ``x``.

    Raises:
        ValueError: If ``kind`` is unknown.
    """
    if kind == 'relu':
        x = F.relu(x)
    elif kind == 'elu+1':
        x = F.elu(x) + 1
    elif kind == 'sigmoid':
        x = torch.sigmoid(x)
    elif kind != 'identity':
        raise ValueError(f'feature_map must be one of {FEATURE_MAPS}, '
                         f'got {kind!r}')
    return x + offset if offset else x


def cheaper_order(num_queries: int, num_keys: int, head_dims: int,
                  value_dims: int) -> str:
    """Return the order of ``Q K^T V`` with fewer multiply-accumulates.

    For N queries, M keys, head width D and value width E, 'left',
    ``(Q K^T) V``, costs N M (D + E), and 'right', ``Q (K^T V)``, costs
    (N + M) D E. In self-attention with D = E, 'right' wins iff N > D.
    """
    left = num_queries * num_keys * (head_dims + value_dims)
    right = (num_queries + num_keys) * head_dims * value_dims
    return 'right' if right < left else 'left'


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, order: str = 'auto',
                     eps: float = 1e-6, clamp_eps: bool = False) -> Tensor:
    r"""Attend with the scores ``q k^T`` instead of their softmax.

    .. math:: y_i = q_i \sum_j k_j^T v_j / (q_i \sum_j k_j^T + eps)

    These are Eqs. 2 and 3 of `Linear Video Transformer with Feature Fixation
    <https://arxiv.org/abs/2210.08164>`_. The computation is at least in
    float32, also under autocast, because ``K^T V`` over thousands of tokens
    exceeds the range of float16. Only bfloat16 inputs without gradients are
    multiplied in bfloat16, whose range is sufficient. With gradients, float32
    is needed, because terms of the query gradients cancel.

    Args:
        q: Queries after a non-negative
            :func:`mmvidattn.ops.feature_map`, [*, N, G, D].
        k: Keys after the same feature map, [*, M, G, D].
        v: Values, [*, M, G, E].
        order: 'left' multiplies ``Q K^T`` first, 'right' multiplies
            ``K^T V`` first; the results agree up to rounding. 'auto' takes
            the cheaper one. Defaults to 'auto'.
        eps: Added to the denominator, so that the result for an all-zero query
            is zero. Defaults to 1e-6.
        clamp_eps: Use ``eps`` as the lower bound of the denominator instead.
            Defaults to False.

    Returns:
        [*, N, G, E], in the dtype of ``v``.

    Raises:
        ValueError: If the shapes do not match or ``order`` is unknown.
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
            # If all scores are zero, the numerator and the result are zero.
            denominator = denominator.masked_fill(denominator == 0, 1)
        elif clamp_eps:
            denominator = denominator.clamp_min(eps)
        else:
            denominator = denominator + eps
        y = numerator / denominator
    return y.transpose(-3, -2).to(dtype)


def naive_linear_attention(q: Tensor, k: Tensor, v: Tensor, eps: float = 1e-6,
                           clamp_eps: bool = False) -> Tensor:
    """Reference of :func:`linear_attention`: Eq. 3 with the full matrix."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1)
    sums = scores.sum(dim=-1, keepdim=True)
    y = scores @ v / (sums.clamp(min=eps) if clamp_eps else sums + eps)
    return y.transpose(-3, -2)
