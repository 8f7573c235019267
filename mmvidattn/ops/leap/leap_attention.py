# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Leap attention through torch's fused kernels."""
from torch import Tensor

from ..softmax_attention import softmax_attention
from .pair import leap_pair, leap_unpair


def leap_attention(q: Tensor,
                   k: Tensor,
                   v: Tensor,
                   *,
                   level: int,
                   scale: float | None = None) -> Tensor:
    """Softmax attention among the tokens of frames T / 2^R apart, Eq. 8-13.

    Args:
        q: Queries, [B, T, N, G, D].
        k: Keys, [B, T, M, G, D].
        v: Values, [B, T, M, G, E].
        level: Pyramid level R.
        scale: ``D ** -0.5`` by default.

    Returns:
        [B, T, N, G, E].

    Raises:
        ValueError: If the frames do not fall into pairs, or the shapes do
            not fit.
    """
    y = softmax_attention(
        *(leap_pair(x, level) for x in (q, k, v)), scale=scale)
    return leap_unpair(y, level, q.shape[1])
