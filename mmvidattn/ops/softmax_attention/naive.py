# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: softmax attention with its matrix written out."""
import torch
from torch import Tensor


def naive_softmax_attention(q: Tensor,
                            k: Tensor,
                            v: Tensor,
                            scale: float | None = None,
                            key_mask: Tensor | None = None,
                            bias: Tensor | None = None) -> Tensor:
    """Args and result as :func:`softmax_attention`; some key must count."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scale = q.shape[-1]**-0.5 if scale is None else scale
    scores = q @ k.transpose(-2, -1) * scale
    if bias is not None:
        scores = scores + bias
    if key_mask is not None:
        scores = scores.masked_fill(~key_mask[..., None, None, :], -torch.inf)
    return (scores.softmax(dim=-1) @ v).transpose(-3, -2)
