# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Shift, ReLU, gate and linear attention as one operation.

The parts read and write the same few tensors again and again. As one
operation each pass does several of them, heads are never copied next to each
other, and the backward pass computes the cheap intermediate results again
instead of keeping them.
"""
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..linear_attention import cheaper_order
from ..shift import Fold

PATTERNS = ('space', 'time', 'joint')
BOUNDARIES = ('zero', 'self')


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
        q, k, v = _mapped(qkv, bias, options)
        if gate_weight is not None:
            ratio = _ratio((q, k, v), gate_weight, gate_bias)
            q *= ratio
            k *= ratio
        y = torch.empty_like(q)
        for q, k, v, out in _sequences(options, q, k, v, y):
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
        q, k, v = _mapped(qkv, bias, options)
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


def _mapped(qkv: Tensor, bias: Tensor | None,
            options: _Options) -> tuple[Tensor, Tensor, Tensor]:
    """Mapped queries, shifted and mapped keys, shifted values."""
    # relu(x) + c is max(x + c, c), and c joins the bias.
    if bias is None:
        bias = qkv.new_zeros(qkv.shape[-1])
    bias = bias.view(3, -1).clone()
    bias[:2] += options.offset
    sources = qkv.chunk(3, dim=-1)
    q = sources[0] + bias[0]
    k, v = (
        _shift(x, b, options.plan) for x, b in zip(sources[1:], bias[1:]))
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


Box = tuple[slice, ...]


def _boxes(shape: Sequence[int],
           offset: tuple[int, int, int]) -> tuple[Box, Box, list[Box]]:
    """Tokens whose neighbour is inside, the neighbours, the other tokens.

    Each indexes [B, T, H, W] of the shape (T, H, W).
    """
    here, there, outside = [slice(None)], [slice(None)], []
    for i, (n, o) in enumerate(zip(shape, offset)):
        first, last = min(max(-o, 0), n), max(min(n - o, n), 0)
        last = max(first, last)
        for edge in slice(0, first), slice(last, n):
            if edge.start < edge.stop:
                outside.append((*here, edge, *[slice(None)] * (2 - i)))
        here.append(slice(first, last))
        there.append(slice(first + o, last + o))
    return tuple(here), tuple(there), outside


def _folds(plan: Sequence[Fold], channels: int) -> Iterator[Fold]:
    """The plan, with the channels that stay between its folds."""
    done = 0
    for fold in (*plan, Fold(channels, channels, (0, 0, 0), 'zero')):
        if fold.start > done:
            yield Fold(done, fold.start, (0, 0, 0), 'zero')
        if fold.stop > fold.start:
            yield fold
        done = fold.stop


def _shift(x: Tensor, bias: Tensor, plan: Sequence[Fold]) -> Tensor:
    """``neighbour_shift(x + bias)`` in one pass over x [B, T, H, W, C]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    for start, stop, offset, boundary in _folds(plan, x.shape[-1]):
        here, there, outside = _boxes(x.shape[1:4], offset)
        x_fold, out_fold = (y[..., start:stop] for y in (x, out))
        bias_fold = bias[start:stop]
        torch.add(x_fold[there], bias_fold, out=out_fold[here])
        for box in outside:
            if boundary == 'zero':
                out_fold[box] = 0
            else:
                torch.add(x_fold[box], bias_fold, out=out_fold[box])
    return out


def _unshift(dx: Tensor, plan: Sequence[Fold], into: Tensor) -> None:
    """Add the gradient of :func:`_shift` to ``into``, which is zero."""
    for start, stop, offset, boundary in _folds(plan, dx.shape[-1]):
        here, there, outside = _boxes(dx.shape[1:4], offset)
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
