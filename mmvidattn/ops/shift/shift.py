# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Channels read from neighbouring tokens, by slices and one concatenation."""
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .plan import Fold


def neighbour_shift(x: Tensor, plan: Sequence[Fold]) -> Tensor:
    """Give some channels of each token those of its neighbours.

    Args:
        x: Tokens, [B, T, H, W, *, C]; what stands between W and C (keys and
            values side by side, say) is shifted alike.
        plan: Folds of the C channels, from :func:`shift_plan`, in ascending
            order and disjoint.

    Returns:
        A new tensor of the shape of ``x``.
    """
    if not plan:
        return x
    edges = sorted({0, x.shape[-1], *(e for f in plan for e in f[:2])})
    pieces = x.split([b - a for a, b in zip(edges, edges[1:])], dim=-1)
    folds = {fold.start: fold for fold in plan}
    return torch.cat([
        _read(piece, folds[start]) if start in folds else piece
        for start, piece in zip(edges, pieces)
    ], dim=-1)


def _read(x: Tensor, fold: Fold) -> Tensor:
    """The tokens at ``fold.offset`` from each token of [B, T, H, W, *]."""
    if fold.boundary == 'replicate':
        for dim, (offset, length) in enumerate(
                zip(fold.offset, x.shape[1:4]), start=1):
            if offset:
                there = torch.arange(length, device=x.device) + offset
                x = x.index_select(dim, there.clamp(0, length - 1))
        return x
    # A pad that is negative on one side and positive on the other shifts.
    pads = [0, 0] * (x.dim() - 4)
    for offset, length in zip(fold.offset[::-1], x.shape[3:0:-1]):
        offset = max(-length, min(offset, length))
        pads += [-offset, offset]
    there = F.pad(x, pads)
    if fold.boundary == 'self':
        outside = 1 - F.pad(x.new_ones(x.shape[1:4]), pads[-6:])
        there = there + x * outside.view(1, *x.shape[1:4],
                                         *[1] * (x.dim() - 4))
    return there
