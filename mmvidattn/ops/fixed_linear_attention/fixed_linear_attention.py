# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shift, ReLU, gate and linear attention as one operation.

The parts read and write the same few tensors again and again. As one
operation each pass does several of them, heads are never copied next to each
other, and the backward pass computes the cheap intermediate results again
instead of keeping them.
"""
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..linear_attention import cheaper_order
from ..shift import Fold

PATTERNS = ('space', 'time', 'joint')
BOUNDARIES = ('zero', 'self')
# Numbers in the queries of a piece: 8 MiB in float32.
PIECE_NUMEL = 2**21


def fixed_linear_attention(qkv: Tensor,
                           bias: Tensor | None,
                           gate_weight: Tensor | None,
                           gate_bias: Tensor | None,
                           plan: Sequence[Fold] = (),
                           *,
                           num_heads: int,
                           pattern: str,
                           offset: float = 0.,
                           eps: float = 1e-6) -> Tensor:
    """Linear attention with shifted keys and values and a shared gate.

    Equals, in this order, :func:`mmvidattn.ops.neighbour_shift` of keys and
    values, ``relu(x) + offset`` of queries and keys, their product with
    :func:`mmvidattn.ops.fixation_ratio`, and
    :func:`mmvidattn.ops.linear_attention` in the cheaper order.

    Args:
        qkv: Queries, keys and values side by side, before their bias,
            [B, T, H, W, 3C], contiguous, float32 or float64.
        bias: [3C], or None.
        gate_weight: [D, 3D], cooperation of Q, K and V, or [D, 2D], of Q and
            K; None for no gate.
        gate_bias: [D], with ``gate_weight``.
        plan: Folds of the C channels of keys and values, from
            :func:`mmvidattn.ops.shift_plan`, with the boundaries 'zero' and
            'self'.
        num_heads: Heads G; D is C / G.
        pattern: Which tokens attend to each other: 'space' (those of a
            frame), 'time' (those at a place) or 'joint' (all of a clip).
        offset: Added after ReLU, not negative.
        eps: Added to the denominator.

    Returns:
        [B, T, H, W, C]. It can be differentiated once.

    Raises:
        ValueError: If the pattern or a boundary is none of these, or the
            tensors are of another kind.
    """
    if pattern not in PATTERNS:
        raise ValueError(
            f'pattern must be one of {PATTERNS}, got {pattern!r}')
    for fold in plan:
        if fold.boundary not in BOUNDARIES:
            raise ValueError('fixed_linear_attention shifts with a boundary '
                             f'of {BOUNDARIES}, got {fold.boundary!r}')
    if offset < 0:
        raise ValueError(f'offset must not be negative, got {offset}')
    if qkv.dim() != 5 or qkv.shape[-1] % (3 * num_heads) or \
            not qkv.is_contiguous() or qkv.dtype.itemsize < 4:
        raise ValueError(
            'fixed_linear_attention takes qkv [B, T, H, W, 3C], contiguous, '
            f'float32 or float64, C a multiple of num_heads={num_heads}; got '
            f'{tuple(qkv.shape)} of {qkv.dtype}')
    return _FixedLinearAttention.apply(
        qkv, bias, gate_weight, gate_bias,
        _Options(tuple(plan), num_heads, pattern, offset, eps))


class _Options(NamedTuple):
    plan: tuple[Fold, ...]
    num_heads: int
    pattern: str
    offset: float
    eps: float


class _FixedLinearAttention(torch.autograd.Function):

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, bias: Tensor | None,
                gate_weight: Tensor | None, gate_bias: Tensor | None,
                options: _Options) -> Tensor:
        *shape, channels = qkv.shape
        y = qkv.new_empty(*shape, channels // 3)
        for piece in _pieces(y.shape, options.pattern):
            q, k, v = _mapped(qkv, bias, options, piece)
            if gate_weight is not None:
                ratio = _ratio((q, k, v), gate_weight, gate_bias)
                q *= ratio
                k *= ratio
            for q, k, v, out in _sequences(options, q, k, v, y[piece]):
                _attend(q, k, v, options.eps, out)
        ctx.options = options
        ctx.save_for_backward(qkv, bias, gate_weight, gate_bias, y)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        qkv, bias, gate_weight, gate_bias, y = ctx.saved_tensors
        options = ctx.options
        dy = dy.contiguous()
        q, k, v = _mapped(qkv, bias, options, _whole(y.shape))
        fixed_q, fixed_k, ratio = q, k, None
        if gate_weight is not None:
            ratio = _ratio((q, k, v), gate_weight, gate_bias)
            fixed_q, fixed_k = q * ratio, k * ratio
        dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
        for tensors in _sequences(options, fixed_q, fixed_k, v, y, dy, dq, dk,
                                  dv):
            _attend_backward(*tensors[:5], options.eps, *tensors[5:])
        dgate_weight = dgate_bias = None
        if ratio is not None:
            dratio = (dq * q).addcmul_(dk, k)
            dq *= ratio
            dk *= ratio
            D = ratio.shape[-1] // options.num_heads
            # Of the sigmoid's argument.
            dlogit = torch.ops.aten.sigmoid_backward(dratio, ratio).view(-1, D)
            num_inputs = gate_weight.shape[1] // D
            dgate_weight = torch.cat(
                [dlogit.t() @ x.view(-1, D) for x in (q, k, v)[:num_inputs]],
                dim=1)
            dgate_bias = dlogit.sum(dim=0)
            for dx, weight in zip((dq, dk, dv), gate_weight.split(D, dim=1)):
                dx.view(-1, D).addmm_(dlogit, weight)
        # A number at the offset was not positive before ReLU.
        threshold_backward = torch.ops.aten.threshold_backward
        dq = threshold_backward(dq, q, options.offset)
        dk = threshold_backward(dk, k, options.offset)
        dqkv = torch.zeros_like(qkv)
        dqkv.chunk(3, dim=-1)[0].copy_(dq)
        for dx, into in zip((dk, dv), dqkv.chunk(3, dim=-1)[1:]):
            _unshift(dx, options.plan, into)
        dbias = None if bias is None else dqkv.flatten(0, -2).sum(dim=0)
        return dqkv, dbias, dgate_weight, dgate_bias, None


Box = tuple[slice, slice, slice, slice]


def _whole(shape: Sequence[int]) -> Box:
    """All tokens of [B, T, H, W, C]."""
    return tuple(slice(0, n) for n in shape[:4])


def _pieces(shape: Sequence[int], pattern: str) -> Iterator[Box]:
    """Tokens of [B, T, H, W, C] that attend to no others, a few at a time.

    Memory that is soon free again is used again: fresh memory costs a page
    fault for each of its pages.
    """
    whole = _whole(shape)
    axis = dict(space=1, time=2, joint=0)[pattern]
    for b in range(shape[0]):
        clip = (slice(b, b + 1), *whole[1:])
        if axis == 0:
            yield clip
            continue
        numel = math.prod(shape[1:]) // shape[axis]
        step = max(1, PIECE_NUMEL // numel)
        for start in range(0, shape[axis], step):
            some = slice(start, min(start + step, shape[axis]))
            yield (*clip[:axis], some, *clip[axis + 1:])


def _mapped(qkv: Tensor, bias: Tensor | None, options: _Options,
            piece: Box) -> tuple[Tensor, Tensor, Tensor]:
    """Mapped queries, shifted and mapped keys, shifted values of a piece."""
    # relu(x) + c is max(x + c, c), and c joins the bias.
    if bias is None:
        bias = qkv.new_zeros(qkv.shape[-1])
    bias = bias.view(3, -1).clone()
    bias[:2] += options.offset
    sources = qkv.chunk(3, dim=-1)
    q = sources[0][piece] + bias[0]
    k, v = (
        _shift(x, b, options.plan, piece)
        for x, b in zip(sources[1:], bias[1:]))
    return q.clamp_min_(options.offset), k.clamp_min_(options.offset), v


def _ratio(inputs: tuple[Tensor, ...], weight: Tensor,
           bias: Tensor) -> Tensor:
    """Gate of each head, of the shape of the inputs [*, C]."""
    D = len(weight)
    (x, w), *rest = zip(inputs, weight.split(D, dim=1))
    logit = torch.addmm(bias, x.view(-1, D), w.t())
    for x, w in rest:
        logit.addmm_(x.view(-1, D), w.t())
    return logit.sigmoid_().view_as(inputs[0])


def _boxes(shape: Sequence[int], offset: tuple[int, int, int],
           piece: Box) -> tuple[Box, Box, list[Box]]:
    """Where the tokens of a piece have their neighbours.

    Args:
        shape: Of all tokens, [B, T, H, W].
        offset: Of the neighbours, in frames, rows and columns.
        piece: Some of all tokens.

    Returns:
        The tokens whose neighbour is inside; the neighbours; the other
        tokens, in boxes that do not overlap. All index the whole tensor.
    """
    here, there, outside = [piece[0]], [piece[0]], []
    for axis, o in enumerate(offset, start=1):
        low, high = piece[axis].start, piece[axis].stop
        first = min(max(-o, low), high)
        last = max(min(shape[axis] - o, high), first)
        for start, stop in (low, first), (last, high):
            if start < stop:
                outside.append((*here, slice(start, stop), *piece[axis + 1:]))
        here.append(slice(first, last))
        there.append(slice(first + o, last + o))
    return tuple(here), tuple(there), outside


def _within(box: Box, piece: Box) -> Box:
    """A box of the whole tensor, as one of the piece that it lies in."""
    return tuple(
        slice(b.start - p.start, b.stop - p.start)
        for b, p in zip(box, piece))


def _folds(plan: Sequence[Fold], channels: int) -> Iterator[Fold]:
    """The plan, with the channels that stay between its folds."""
    done = 0
    for fold in (*plan, Fold(channels, channels, (0, 0, 0), 'zero')):
        if fold.start > done:
            yield Fold(done, fold.start, (0, 0, 0), 'zero')
        if fold.stop > fold.start:
            yield fold
        done = fold.stop


def _shift(x: Tensor, bias: Tensor, plan: Sequence[Fold],
           piece: Box) -> Tensor:
    """A piece of ``neighbour_shift(x + bias)``, [B, T, H, W, C]."""
    out = x.new_empty(x[piece].shape)
    for start, stop, offset, boundary in _folds(plan, x.shape[-1]):
        here, there, outside = _boxes(x.shape, offset, piece)
        x_fold, out_fold = (y[..., start:stop] for y in (x, out))
        bias_fold = bias[start:stop]
        torch.add(
            x_fold[there], bias_fold, out=out_fold[_within(here, piece)])
        for box in outside:
            out_box = out_fold[_within(box, piece)]
            if boundary == 'zero':
                out_box.zero_()
            else:
                torch.add(x_fold[box], bias_fold, out=out_box)
    return out


def _unshift(dx: Tensor, plan: Sequence[Fold], into: Tensor) -> None:
    """Add the gradient of :func:`_shift` to ``into``, which is zero."""
    for start, stop, offset, boundary in _folds(plan, dx.shape[-1]):
        here, there, outside = _boxes(dx.shape, offset, _whole(dx.shape))
        dx_fold, into_fold = (y[..., start:stop] for y in (dx, into))
        into_fold[there] = dx_fold[here]
        if boundary == 'self':
            for box in outside:
                into_fold[box] += dx_fold[box]


def _sequences(options: _Options,
               *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """[B, T, H, W, C] as views [sequences, tokens, D], a batch at a time."""
    B, T, H, W, C = tensors[0].shape
    G = options.num_heads
    if options.pattern == 'time':
        views = [x.view(B, T, H * W * G, C // G) for x in tensors]
    elif options.pattern == 'space':
        views = [x.view(B * T, H * W, G, C // G) for x in tensors]
    else:
        views = [x.view(B, T * H * W, G, C // G) for x in tensors]
    return zip(*(x.transpose(1, 2) for x in views))


def _attend(q: Tensor, k: Tensor, v: Tensor, eps: float, y: Tensor) -> None:
    """Linear attention of views [sequences, tokens, D], into y."""
    if cheaper_order(q.shape[1], k.shape[1], q.shape[2], v.shape[2]) == 'left':
        scores = torch.bmm(q, k.mT)
        scores /= scores.sum(dim=-1, keepdim=True).add_(eps)
        y.copy_(torch.bmm(scores, v))
    else:
        numerator, denominator, _, _ = _right_products(q, k, v, eps)
        torch.div(numerator, denominator, out=y)


def _right_products(q: Tensor, k: Tensor, v: Tensor,
                    eps: float) -> tuple[Tensor, ...]:
    """Numerator, denominator, K^T V and the sum of K."""
    state, total = torch.bmm(k.mT, v), k.sum(dim=1)
    both = torch.bmm(q, torch.cat((state, total.unsqueeze(-1)), dim=-1))
    return both[..., :-1], both[..., -1:].add_(eps), state, total


def _attend_backward(q: Tensor, k: Tensor, v: Tensor, y: Tensor, dy: Tensor,
                     eps: float, dq: Tensor, dk: Tensor, dv: Tensor) -> None:
    """Gradients of :func:`_attend`, into dq, dk and dv."""
    inner = torch.linalg.vecdot(dy, y).unsqueeze(-1)
    if cheaper_order(q.shape[1], k.shape[1], q.shape[2], v.shape[2]) == 'left':
        scores = torch.bmm(q, k.mT)
        denominator = scores.sum(dim=-1, keepdim=True).add_(eps)
        scores /= denominator
        dv.copy_(torch.bmm(scores.mT, dy))
        dscores = torch.bmm(dy, v.mT).sub_(inner).div_(denominator)
        dq.copy_(torch.bmm(dscores, k))
        dk.copy_(torch.bmm(dscores.mT, q))
    else:
        _, denominator, state, total = _right_products(q, k, v, eps)
        dnumerator = dy / denominator
        ddenominator = inner.div_(denominator).neg_()
        torch.add(
            torch.bmm(dnumerator, state.mT),
            ddenominator * total.unsqueeze(1),
            out=dq)
        dstate = torch.bmm(q.mT, dnumerator)
        dtotal = torch.bmm(q.mT, ddenominator).mT
        torch.add(torch.bmm(v, dstate.mT), dtotal, out=dk)
        dv.copy_(torch.bmm(k, dstate))
