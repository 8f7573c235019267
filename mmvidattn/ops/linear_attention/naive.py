# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: the attention matrix is formed, row by row normalised."""
from torch import Tensor


def naive_linear_attention(q: Tensor,
                           k: Tensor,
                           v: Tensor,
                           eps: float = 1e-6,
                           clamp_eps: bool = False,
                           key_mask: Tensor | None = None) -> Tensor:
    """Eq. 3 of the paper with ``q`` and ``k`` already mapped.

    Args:
        q: [*, N, G, D].
        k: [*, M, G, D].
        v: [*, M, G, E].
        eps: Added to each row's sum.
        clamp_eps: Whether ``eps`` is the least sum instead.
        key_mask: Bool, [*, M], True where a key counts.

    Returns:
        [*, N, G, E].
    """
    q, k, v = (x.transpose(-3, -2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1)
    if key_mask is not None:
        scores = scores * key_mask[..., None, None, :]
    sums = scores.sum(dim=-1, keepdim=True)
    y = scores @ v / (sums.clamp(min=eps) if clamp_eps else sums + eps)
    return y.transpose(-3, -2)
