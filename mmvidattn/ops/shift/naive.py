# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The reference: each token looks its neighbours up one by one."""
from collections.abc import Sequence

from torch import Tensor

from .plan import Fold


def naive_neighbour_shift(x: Tensor, plan: Sequence[Fold]) -> Tensor:
    """Args and result as :func:`neighbour_shift`."""
    _, T, H, W, _ = x.shape
    out = x.clone()
    for start, stop, (dt, dy, dx), boundary in plan:
        for t in range(T):
            for y in range(H):
                for z in range(W):
                    there = (t + dt, y + dy, z + dx)
                    inside = all(0 <= i < n
                                 for i, n in zip(there, (T, H, W)))
                    if not inside and boundary == 'zero':
                        out[:, t, y, z, start:stop] = 0
                        continue
                    if not inside and boundary == 'self':
                        continue
                    there = [
                        min(max(i, 0), n - 1)
                        for i, n in zip(there, (T, H, W))
                    ]
                    out[:, t, y, z, start:stop] = \
                        x[:, there[0], there[1], there[2], start:stop]
    return out
