# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shifts that move some channels to the next and the previous frame."""
import torch
from torch import Tensor

from .neighbor_shift import Fold, neighbor_shift

FIRST = 'next', 'previous'


def periodic_shift(x: Tensor, fraction: float = 0.25,
                   first: str = 'next') -> Tensor:
    """Shift some channels of each head by one frame.

    These are Eqs. 16 to 18 of `LAPS <https://arxiv.org/abs/2207.05526>`_. The
    first ``fraction`` of a head's channels comes from the neighboring frame
    that ``first`` selects, the second ``fraction`` from the neighbor on the
    other side. Frames outside of the clip are zero.

    Args:
        x: Outputs of the heads, [B, T, N, G, D].
        fraction: Fraction of the D channels from each side, at most 1/2. The
            released models use 1/4 (ResT 1/8), the paper says 1/8. Defaults to
            0.25.
        first: Source of the first part: 'next', as in the released code, or
            'previous', as in the paper. Defaults to 'next'.

    Returns:
        [B, T, N, G, D].

    Raises:
        ValueError: If ``fraction`` or ``first`` is not allowed.
    """
    return _shift(x, fraction, first)


def plain_shift(x: Tensor, fraction: float = 0.25,
                first: str = 'next') -> Tensor:
    """Shift the concatenated channels of all heads.

    See :func:`periodic_shift` for the arguments.
    """
    return _shift(x.flatten(-2), fraction, first).unflatten(-1, x.shape[-2:])


def token_shift(x: Tensor, fraction: float = 0.25,
                first: str = 'next') -> Tensor:
    """Shift only the channels of the frames' class tokens.

    `Token Shift Transformer for Video Classification
    <https://arxiv.org/abs/2108.02432>`_.

    Args:
        x: Tokens, the class token first, [B, T, 1 + N, C].
        fraction: See :func:`periodic_shift`.
        first: See :func:`periodic_shift`.
    """
    cls_token = _shift(x[:, :, :1], fraction, first)
    return torch.cat([cls_token, x[:, :, 1:]], dim=2)


def _shift(x: Tensor, fraction: float, first: str) -> Tensor:
    """Shift along T by the channels of the last axis, [B, T, N, *, C]."""
    if not 0 <= fraction <= 0.5:
        raise ValueError(f'fraction must be in [0, 1/2], got {fraction}')
    if first not in FIRST:
        raise ValueError(f'first must be one of {FIRST}, got {first!r}')
    # Avoid rounding errors: 1/3 of 12 channels is 4.
    fold = int(fraction * x.shape[-1] + 1e-6)
    offset = 1 if first == 'next' else -1
    plan = (Fold(0, fold, (offset, 0, 0), 'zero'),
            Fold(fold, 2 * fold, (-offset, 0, 0), 'zero'))
    if not fold:
        return x
    return neighbor_shift(x.unsqueeze(3), plan).squeeze(3)


def naive_periodic_shift(x: Tensor, fraction: float = 0.25,
                         first: str = 'next') -> Tensor:
    """Reference of :func:`periodic_shift`: Eqs. 16 to 18 frame by frame."""
    T, fold = x.shape[1], int(fraction * x.shape[-1] + 1e-6)
    ahead = 1 if first == 'next' else -1
    out = x.clone()
    for t in range(T):
        for start, source in (0, t + ahead), (fold, t - ahead):
            out[:, t, ..., start:start + fold] = (
                x[:, source, ..., start:start + fold]
                if 0 <= source < T else 0)
    return out
