# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: softmax attention with its matrix written out."""
from torch import Tensor


def naive_softmax_attention(q: Tensor,
                            k: Tensor,
                            v: Tensor,
                            scale: float | None = None) -> Tensor:
    """Args and result as :func:`softmax_attention`."""
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scale = q.shape[-1]**-0.5 if scale is None else scale
    y = (q @ k.transpose(-2, -1) * scale).softmax(dim=-1) @ v
    return y.transpose(-3, -2)
