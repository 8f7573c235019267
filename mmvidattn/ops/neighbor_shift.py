# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Neighbor shift: some channels of a token come from its neighbors."""
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .torch_private import is_eager

BOUNDARIES = ('zero', 'self')
TEMPORAL_MODES = ('tsm', 'window')
SPATIAL_MODES = ('cross', 'square', 'eight')


class Fold(NamedTuple):
    """Channels [start, stop), read from the token at ``offset``.

    Attributes:
        start: First channel.
        stop: End of the channels.
        offset: Distance of the source token in frames, rows and columns.
        boundary: Value outside of the clip, see :func:`shift_plan`.
    """
    start: int
    stop: int
    offset: tuple[int, int, int]
    boundary: str


def shift_plan(mode: str,
               channels: int,
               *,
               size: int = 1,
               divisor: int | None = None,
               alpha: float | None = None,
               boundary: str | None = None) -> tuple[Fold, ...]:
    """Choose the channels of a token that come from each neighbor.

    This is the neighborhood association of `Linear Video Transformer with
    Feature Fixation <https://arxiv.org/abs/2210.08164>`_, Sec. 4.3 and A.3. A
    plan is a tuple of folds: ranges of channels, each with the neighbor that
    the range is read from.

    Pass either ``divisor`` or ``alpha``; it selects the layout. ``divisor``
    selects the layout of the released code: each fold has ``channels //
    divisor`` channels, the folds come first, and the unshifted channels last.
    ``alpha`` selects the layout of the paper: the first ``alpha * channels``
    channels are unshifted, and n neighbors share the rest, ``(1 - alpha) *
    channels // n`` each. Remaining channels of the division are also
    unshifted.

    ======  ============  =====================================================
    mode    layout        neighbors
    ======  ============  =====================================================
    tsm     divisor       the next frame, then the previous one (``size`` away)
    window  alpha         the 2 ``size`` nearest frames
    cross   divisor       below, above, right, left, exactly ``size`` away
    cross   alpha         left, right, above, below, at each of 1 .. ``size``
    square  alpha         the (2 ``size`` + 1)^2 - 1 surrounding tokens
    eight   divisor       the four of cross, then the four diagonals; size 2
                          adds the 16 nearer tokens
    ======  ============  =====================================================

    Args:
        mode: Mode from the table above.
        channels: Channels of a token, all heads together.
        size: Distance or radius, tau or xi in the paper. Defaults to 1.
        divisor: Divisor of the released layout. For 'eight' it defaults to
            ``2 ((2 size + 1)^2 - 1)``, as in the released code.
        alpha: Fraction of unshifted channels of the paper's layout, in
            [0, 1].
        boundary: Value that a fold reads outside of the clip: 'zero' or 'self'
            (the token's own channels). Defaults to 'zero', except that the
            fifth and later folds of 'eight' default to 'self', as in the
            released code.

    Raises:
        ValueError: If an option is unknown or does not belong to the mode.
    """
    if mode not in TEMPORAL_MODES + SPATIAL_MODES:
        raise ValueError('the shift mode must be one of '
                         f'{TEMPORAL_MODES + SPATIAL_MODES}, got {mode!r}')
    if boundary not in (None, *BOUNDARIES):
        raise ValueError('the shift boundary must be one of '
                         f'{BOUNDARIES}, got {boundary!r}')
    if size < 1:
        raise ValueError(f'the shift size must be at least 1, got {size}')
    if mode == 'eight' and divisor is None and alpha is None:
        divisor = 2 * ((2 * size + 1)**2 - 1)
    if (divisor is None) == (alpha is None):
        raise ValueError(f'the shift {mode!r} takes either divisor or alpha, '
                         f'got divisor={divisor} and alpha={alpha}')
    layout = 'alpha' if divisor is None else 'divisor'
    if (mode, layout) not in _OFFSETS:
        raise ValueError(f'the shift {mode!r} is not defined by {layout}')
    offsets = _OFFSETS[mode, layout](size)

    if layout == 'divisor':
        fold, start = channels // divisor, 0
        if divisor < len(offsets):
            raise ValueError(
                f'the shift {mode!r} reads {len(offsets)} neighbors, so its '
                f'divisor must be at least that, got {divisor}')
    else:
        if not 0 <= alpha <= 1:
            raise ValueError(f'alpha must be in [0, 1], got {alpha}')
        # (1 - alpha) * channels is a whole number up to rounding errors.
        shared = int(round((1 - alpha) * channels, 6))
        fold = shared // len(offsets)
        start = channels - shared
    folds = []
    for i, offset in enumerate(offsets):
        keeps = mode == 'eight' and i >= 4
        folds.append(
            Fold(start, start + fold, offset, boundary
                 or ('self' if keeps else 'zero')))
        start += fold
    return tuple(folds) if fold else ()


def _eight(size: int) -> list[tuple[int, int, int]]:
    offsets = _cross_at(size) + _diagonals_at(size)
    # The released code adds these only for size 2.
    if size == 2:
        offsets += [(0, -2, -1), (0, -2, 1), (0, -1, -2), (0, 1, -2),
                    (0, 2, -1), (0, 2, 1), (0, -1, 2), (0, 1, 2)]
        offsets += _cross_at(1) + _diagonals_at(1)
    return offsets


def _diagonals_at(s: int) -> list[tuple[int, int, int]]:
    return [(0, -s, -s), (0, s, s), (0, -s, s), (0, s, -s)]


def _cross_at(s: int) -> list[tuple[int, int, int]]:
    return [(0, s, 0), (0, -s, 0), (0, 0, s), (0, 0, -s)]


def _cross_up_to(size: int) -> list[tuple[int, int, int]]:
    return [
        offset for s in range(1, size + 1)
        for offset in ((0, 0, -s), (0, 0, s), (0, -s, 0), (0, s, 0))
    ]


def _square(size: int) -> list[tuple[int, int, int]]:
    reach = range(-size, size + 1)
    return [(0, y, x) for y in reach for x in reach if (y, x) != (0, 0)]


_OFFSETS = {
    ('tsm', 'divisor'): lambda s: [(s, 0, 0), (-s, 0, 0)],
    ('window', 'alpha'):
    lambda s: [(t, 0, 0) for t in range(-s, s + 1) if t != 0],
    ('cross', 'divisor'): _cross_at,
    ('cross', 'alpha'): _cross_up_to,
    ('square', 'alpha'): _square,
    ('eight', 'divisor'): _eight,
}


def neighbor_shift(x: Tensor, plan: Sequence[Fold],
                   segment_frames: int | None = None) -> Tensor:
    """Replace some channels of each token by channels of its neighbors.

    Args:
        x: Tokens, [B, T, H, W, *, C]; every entry of the axes between W and
            C (such as keys and values) is shifted in the same way.
        plan: Disjoint folds of the C channels in ascending order, from
            :func:`shift_plan`.
        segment_frames: Length of independent segments of the clip; no
            channel moves between them. Defaults to T.

    Returns:
        A new tensor of the shape of ``x``.

    Raises:
        ValueError: If T is not a multiple of ``segment_frames``.
    """
    B, T = x.shape[:2]
    if segment_frames is not None and T % segment_frames:
        raise ValueError(f'a clip of {T} frames cannot be shifted in '
                         f'segments of segment_frames={segment_frames}')
    if not plan:
        return x
    if segment_frames is not None:
        x = x.reshape(-1, segment_frames, *x.shape[2:])
        return neighbor_shift(x, plan).unflatten(
            0, (B, T // segment_frames)).flatten(1, 2)
    if is_eager():
        return _Shift.apply(x, plan)
    edges = sorted({0, x.shape[-1], *(e for f in plan for e in f[:2])})
    pieces = x.split([b - a for a, b in zip(edges, edges[1:])], dim=-1)
    folds = {fold.start: fold for fold in plan}
    return torch.cat([
        _read(piece, folds[start]) if start in folds else piece
        for start, piece in zip(edges, pieces)
    ], dim=-1)


def causal_plan(plan: Sequence[Fold]) -> tuple[Fold, ...]:
    """Remove the folds that read later frames; their channels stay unshifted.

    Raises:
        ValueError: If a fold reads a previous frame with another boundary
            than 'zero': its value before the first frame would depend on
            frames of the stream.
    """
    plan = tuple(fold for fold in plan if fold.offset[0] <= 0)
    for fold in plan:
        if fold.offset[0] and fold.boundary != 'zero':
            raise ValueError("a causal shift in time has boundary='zero', "
                             f'got {fold.boundary!r}')
    return plan


def shift_memory(plan: Sequence[Fold]) -> tuple[int, int, int]:
    """Return what a plan of :func:`causal_plan` reads of previous frames.

    Returns:
        Number of frames, first channel and end of the channels.
    """
    past = [fold for fold in plan if fold.offset[0]]
    if not past:
        return 0, 0, 0
    return (max([-fold.offset[0] for fold in past]),
            min([fold.start for fold in past]),
            max([fold.stop for fold in past]))


def causal_neighbor_shift(x: Tensor, plan: Sequence[Fold],
                          state: Tensor) -> tuple[Tensor, Tensor]:
    """Apply :func:`neighbor_shift` to the next frames of a stream.

    Args:
        x: Tokens of T >= 1 frames, [B, T, H, W, *, C].
        plan: Plan from :func:`causal_plan` with folds that read previous
            frames.
        state: Channels of the previous frames as in :func:`shift_memory`,
            [B, P, H, W, *, R]; zeros before the first frame.

    Returns:
        Shifted tokens in the shape of ``x``, and the new state.
    """
    frames, start, stop = shift_memory(plan)
    T = x.shape[1]
    memory = torch.cat([state.to(x.dtype), x[..., start:stop]], dim=1)
    pieces, end = [], 0
    for fold in plan:
        dt, *offset = fold.offset
        piece = x[..., fold.start:fold.stop]
        if dt:
            piece = memory[:, frames + dt:frames + dt + T, ...,
                           fold.start - start:fold.stop - start]
        pieces += [x[..., end:fold.start],
                   _read(piece, fold._replace(offset=(0, *offset)))]
        end = fold.stop
    return (torch.cat([*pieces, x[..., end:]], dim=-1),
            memory[:, T:].to(state.dtype))


def _read(x: Tensor, fold: Fold) -> Tensor:
    """Read the token at ``fold.offset`` from each token [B, T, H, W, *]."""
    axes = [*zip(fold.offset, x.shape[1:4])]
    if fold.boundary == 'self':
        if any(abs(n) >= length for n, length in axes):
            return x
        here, there = _places(fold, x.shape)
        y = x[there]
        for dim, (n, length) in reversed([*enumerate(axes, start=1)]):
            if n:
                edge = x[here[:dim]].narrow(
                    dim, 0 if n < 0 else length - n, abs(n))
                y = torch.cat([edge, y] if n < 0 else [y, edge], dim=dim)
        return y
    # Padding one side and cropping the other shifts the tokens.
    pads = [0, 0] * (x.dim() - 4)
    for offset, length in reversed(axes):
        offset = max(-length, min(offset, length))
        pads += [-offset, offset]
    return F.pad(x, pads)


class _Shift(torch.autograd.Function):
    """Shift that reads and writes each channel once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, plan: Sequence[Fold]) -> Tensor:
        ctx.plan = plan
        result = torch.empty(x.shape, dtype=x.dtype, device=x.device)
        end = 0
        for fold in plan:
            result[..., end:fold.start] = x[..., end:fold.start]
            end = fold.stop
            part, y = (z[..., fold.start:end] for z in (result, x))
            for edge in _edges(fold, x.shape):
                part[edge] = y[edge] if fold.boundary == 'self' else 0
            here, there = _places(fold, x.shape)
            part[here] = y[there]
        result[..., end:] = x[..., end:]
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return shift_gradient(grad, ctx.plan), None


def shift_gradient(grad: Tensor, plan: Sequence[Fold],
                   segment_frames: int | None = None,
                   out: Tensor | None = None) -> Tensor:
    """Return the gradient of the input of :func:`neighbor_shift`.

    Args:
        grad: Gradient of its result, [B, T, H, W, *, C].
        plan, segment_frames: As in :func:`neighbor_shift`.
        out: Tensor to write to. Defaults to a new one.
    """
    out = torch.empty_like(grad) if out is None else out
    result = out
    if segment_frames is not None:
        grad, result = (x.unflatten(1, (-1, segment_frames)).flatten(0, 1)
                        for x in (grad, out))
    end = 0
    for fold in plan:
        result[..., end:fold.start] = grad[..., end:fold.start]
        end = fold.stop
        part, y = (z[..., fold.start:end] for z in (result, grad))
        here, there = _places(fold, grad.shape)
        if fold.boundary == 'self':
            part.copy_(y)
            part[here] = 0
            part[there] += y[here]
        else:
            back = fold._replace(offset=[-n for n in fold.offset])
            for edge in _edges(back, grad.shape):
                part[edge] = 0
            part[there] = y[here]
    result[..., end:] = grad[..., end:]
    return out


def _places(fold: Fold, shape: Sequence[int]
            ) -> Iterator[tuple[slice, ...]]:
    """Yield the tokens that have the neighbor, and these neighbors."""
    for sign in (-1, 1):
        yield (slice(None), *(
            slice(max(sign * n, 0), max(length + min(sign * n, 0), 0))
            for n, length in zip(fold.offset, shape[1:4])))


def _edges(fold: Fold, shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Yield the tokens that have no neighbor, by axis."""
    for axis, (n, length) in enumerate(zip(fold.offset, shape[1:4]), start=1):
        if n:
            edge = slice(max(length - n, 0), None) if n > 0 else slice(0, -n)
            yield (*[slice(None)] * axis, edge)


def naive_neighbor_shift(x: Tensor, plan: Sequence[Fold]) -> Tensor:
    """Reference of :func:`neighbor_shift`: one lookup for each token."""
    _, T, H, W, _ = x.shape
    out = x.clone()
    for start, stop, (dt, dy, dx), boundary in plan:
        for t in range(T):
            for y in range(H):
                for z in range(W):
                    there = (t + dt, y + dy, z + dx)
                    if all(0 <= i < n for i, n in zip(there, (T, H, W))):
                        out[:, t, y, z, start:stop] = \
                            x[:, there[0], there[1], there[2], start:stop]
                    elif boundary == 'zero':
                        out[:, t, y, z, start:stop] = 0
    return out
