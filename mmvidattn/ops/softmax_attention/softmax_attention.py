# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Softmax attention through torch's fused kernels."""
import torch.nn.functional as F
from torch import Tensor


def softmax_attention(q: Tensor,
                      k: Tensor,
                      v: Tensor,
                      *,
                      scale: float | None = None,
                      dropout_p: float = 0.) -> Tensor:
    """``softmax(scale Q K^T) V``, Eq. 1 of the paper with its baseline.

    Args:
        q: Queries, [*, N, G, D].
        k: Keys, [*, M, G, D].
        v: Values, [*, M, G, E].
        scale: ``D ** -0.5`` by default.
        dropout_p: Probability of dropping an attention weight.

    Returns:
        [*, N, G, E].
    """
    lead = q.shape[:-3]
    q, k, v = (x.flatten(0, -4) if x.dim() > 3 else x.unsqueeze(0)
               for x in (q, k, v))
    y = F.scaled_dot_product_attention(
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.transpose(1, 2),
        dropout_p=dropout_p,
        scale=scale)
    return y.transpose(1, 2).unflatten(0, lead) if lead else \
        y.transpose(1, 2).squeeze(0)
