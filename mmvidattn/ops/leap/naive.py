# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: Algorithm 1 of the paper, pair by pair."""
import torch
from torch import Tensor

from ..softmax_attention import naive_softmax_attention


def leap_frames(num_frames: int, level: int) -> tuple[list[int], list[int]]:
    """Which frames leap attention pairs: (A[j], B[j]), B[j] = A[j] + S."""
    step = num_frames // 2**level
    first, second = [], []
    for t in range(num_frames):
        if t not in second:
            first.append(t)
            second.append(t + step)
    return first, second


def naive_leap_attention(q: Tensor,
                         k: Tensor,
                         v: Tensor,
                         level: int,
                         scale: float | None = None) -> Tensor:
    """Args and result as :func:`leap_attention`."""
    N = q.shape[2]
    out = q.new_empty(*q.shape[:-1], v.shape[-1])
    for a, b in zip(*leap_frames(q.shape[1], level)):
        pair = naive_softmax_attention(
            *(torch.cat([x[:, a], x[:, b]], dim=1) for x in (q, k, v)),
            scale=scale)
        out[:, a], out[:, b] = pair[:, :N], pair[:, N:]
    return out
