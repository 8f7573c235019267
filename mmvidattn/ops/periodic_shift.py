# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Channels that come from the next and from the previous frame."""
import torch
from torch import Tensor

from .shift import Fold, neighbor_shift

FIRST = 'next', 'previous'


def periodic_shift(x: Tensor,
                   fraction: float = 0.25,
                   first: str = 'next') -> Tensor:
    """Shift a part of each head's channels by a frame, Eq. 16-18.

    Args:
        x: The heads' outputs, [B, T, N, G, D].
        fraction: Part of the D channels that comes from either side. The
            released models have 1/4 (ResT 1/8), the paper says 1/8.
        first: Where the first of the two parts comes from: the 'next' frame,
            as in the released code, or the 'previous', as in the paper. The
            other part comes from the other side; beyond the clip are zeros.

    Returns:
        The same shape.

    Raises:
        ValueError: If an argument is not one of these.
    """
    return _shift(x, fraction, first)


def plain_shift(x: Tensor,
                fraction: float = 0.25,
                first: str = 'next') -> Tensor:
    """The same of all heads' channels together, so that the first heads move.

    See :func:`periodic_shift`.
    """
    return _shift(x.flatten(-2), fraction, first).unflatten(-1, x.shape[-2:])


def token_shift(x: Tensor,
                fraction: float = 0.25,
                first: str = 'next') -> Tensor:
    """The same of the frames' class tokens only.

    `Token Shift Transformer for Video Classification
    <https://arxiv.org/abs/2108.02432>`_.

    Args:
        x: Tokens, the class token first, [B, T, 1 + N, C].
        fraction: See :func:`periodic_shift`.
        first: Likewise.
    """
    cls_token = _shift(x[:, :, :1], fraction, first)
    return torch.cat([cls_token, x[:, :, 1:]], dim=2)


def _shift(x: Tensor, fraction: float, first: str) -> Tensor:
    """[B, T, N, *, C], of the last axis."""
    if not 0 <= fraction <= 0.5:
        raise ValueError('the fraction of a shift must be in [0, 1/2], got '
                         f'{fraction}')
    if first not in FIRST:
        raise ValueError(f'first must be one of {FIRST}, got {first!r}')
    # 1/3 of 12 channels is 4, whatever the rounding.
    fold = int(fraction * x.shape[-1] + 1e-6)
    offset = 1 if first == 'next' else -1
    plan = (Fold(0, fold, (offset, 0, 0), 'zero'),
            Fold(fold, 2 * fold, (-offset, 0, 0), 'zero'))
    if not fold:
        return x
    return neighbor_shift(x.unsqueeze(3), plan).squeeze(3)


def naive_periodic_shift(x: Tensor,
                         fraction: float = 0.25,
                         first: str = 'next') -> Tensor:
    """The reference: Eqs. 16 to 18 of the paper, channel by channel.

    Args and result as :func:`periodic_shift`.
    """
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
