# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: Eq. 16 to 18 of the paper, frame by frame and head by head.
"""
import torch
from torch import Tensor


def naive_periodic_shift(x: Tensor,
                         fraction: float = 0.25,
                         first: str = 'next') -> Tensor:
    """Args and result as :func:`periodic_shift`."""
    T, _, G, D = x.shape[1:]
    fold = int(fraction * D + 1e-6)
    out = torch.zeros_like(x)
    for t in range(T):
        after, before = (t + 1, t - 1) if first == 'next' else (t - 1, t + 1)
        for g in range(G):
            for d in range(D):
                source = after if d < fold else before if d < 2 * fold else t
                if 0 <= source < T:
                    out[:, t, :, g, d] = x[:, source, :, g, d]
    return out
