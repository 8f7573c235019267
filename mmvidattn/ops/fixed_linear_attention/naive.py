# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: the parts of the attention one after the other."""
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor

from ..feature_fixation import naive_fixation_ratio
from ..linear_attention import naive_linear_attention
from ..shift import Fold, naive_neighbour_shift


def naive_fixed_linear_attention(qkv: Tensor,
                                 bias: Tensor | None,
                                 gate_weight: Tensor | None,
                                 gate_bias: Tensor | None,
                                 plan: Sequence[Fold] = (),
                                 *,
                                 num_heads: int,
                                 pattern: str,
                                 offset: float = 0.,
                                 eps: float = 1e-6) -> Tensor:
    """Args and result as :func:`fixed_linear_attention`."""
    q, k, v = (qkv if bias is None else qkv + bias).chunk(3, dim=-1)
    k, v = (naive_neighbour_shift(x, plan) for x in (k, v))
    q, k = F.relu(q) + offset, F.relu(k) + offset
    q, k, v = (x.unflatten(-1, (num_heads, -1)) for x in (q, k, v))
    if gate_weight is not None:
        inputs = (q, k, v)[:gate_weight.shape[1] // q.shape[-1]]
        ratio = naive_fixation_ratio(inputs, gate_weight, gate_bias)
        q, k = q * ratio, k * ratio
    B, T, H, W = qkv.shape[:4]
    if pattern == 'time':
        y = naive_linear_attention(
            *(x.flatten(2, 3).transpose(1, 2) for x in (q, k, v)), eps)
        return y.transpose(1, 2).reshape(B, T, H, W, -1)
    tokens = (2, 3) if pattern == 'space' else (1, 3)
    y = naive_linear_attention(*(x.flatten(*tokens) for x in (q, k, v)), eps)
    return y.reshape(B, T, H, W, -1)
