# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: each score times the cosine of the distance of its tokens."""
import math

import torch
from torch import Tensor


def naive_cosformer_attention(q: Tensor,
                              k: Tensor,
                              v: Tensor,
                              eps: float = 1e-6,
                              key_mask: Tensor | None = None) -> Tensor:
    """Args and result as :func:`cosformer_attention`."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    i = torch.arange(q.shape[-2], dtype=q.dtype)[:, None]
    j = torch.arange(k.shape[-2], dtype=q.dtype)
    angles = math.pi / 2 * (i - j) / max(len(i), len(j))
    scores = q @ k.transpose(-2, -1) * angles.cos()
    if key_mask is not None:
        scores = scores * key_mask[..., None, None, :]
    y = scores @ v / scores.sum(dim=-1, keepdim=True).clamp(min=eps)
    return y.transpose(-3, -2)
