# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training of linear attention with shifts and feature fixation."""
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .feature_fixation import naive_fixation_ratio
from .linear_attention import (
    cheaper_order,
    feature_map,
    naive_linear_attention,
)
from .neighbor_shift import (
    Fold,
    naive_neighbor_shift,
    neighbor_shift,
    shift_gradient,
)
from .precision import at_least_float32, without_autocast


class Gate(NamedTuple):
    """Feature fixation of queries or keys, of each head alone.

    Attributes:
        inputs: Inputs of the map among 'q', 'k' and 'v', such as 'qkv'.
        aggregate: 'concat' or 'add'.
    """
    inputs: str
    aggregate: str


class Options(NamedTuple):
    """Options of :func:`fixated_attention`.

    Attributes:
        num_heads: Number of heads G.
        pattern: 'space', 'time' or 'joint', see ``VideoSelfAttention``.
        kernel, offset: See :func:`mmvidattn.ops.feature_map`.
        order, eps: See :func:`mmvidattn.ops.linear_attention`.
        shifts: Plan and ``segment_frames`` of each shift of keys and values.
        q_gate: Gate of the queries; None for no fixation.
        k_gate: Gate of the keys; None if they have the ratio of the queries.
    """
    num_heads: int
    pattern: str
    kernel: str
    offset: float
    order: str
    eps: float
    shifts: tuple[tuple[Sequence[Fold], int | None], ...] = ()
    q_gate: Gate | None = None
    k_gate: Gate | None = None


def naive_fixated_attention(qkv: Tensor, weights: Sequence[Tensor],
                            options: Options) -> Tensor:
    """Reference of :func:`fixated_attention`: the naive ops in order."""
    q, k, v = qkv.chunk(3, dim=-1)
    for plan, segment_frames in options.shifts:
        size = segment_frames or qkv.shape[1]
        k, v = (torch.cat([naive_neighbor_shift(part, plan)
                           for part in x.split(size, dim=1)], dim=1)
                for x in (k, v))
    q, k = (feature_map(x, options.kernel, options.offset) for x in (q, k))
    q, k, v = (_by_head(x, options) for x in (q, k, v))
    ratios = [
        naive_fixation_ratio(
            tuple(dict(q=q, k=k, v=v)[name] for name in gate.inputs), weight,
            bias, gate.aggregate)
        for gate, weight, bias in _gates(weights, options)]
    if ratios:
        q, k = q * ratios[0], k * ratios[-1]
    result = qkv.new_empty(*qkv.shape[:-1], qkv.shape[-1] // 3)
    _by_head(result, options).copy_(naive_linear_attention(
        *(x.transpose(-3, -2) for x in (q, k, v)),
        eps=options.eps).transpose(-3, -2))
    return result


def _by_head(x: Tensor, options: Options) -> Tensor:
    """View tokens [B, T, H, W, C] as [*, G, N, D]."""
    B, T, H, W, _ = x.shape
    x = x.unflatten(-1, (options.num_heads, -1))
    if options.pattern == 'time':
        return x.permute(0, 2, 3, 4, 1, 5)
    frames = 1 if options.pattern == 'space' else T
    return x.reshape(-1, frames * H * W, *x.shape[4:]).transpose(1, 2)


def fixated_attention(qkv: Tensor, weights: Sequence[Tensor],
                      options: Options) -> Tensor:
    """Shift keys and values, map and gate queries and keys, and attend.

    For training: mapped queries and keys, values and the result are kept for
    the backward pass, which computes the gates again. A second derivative
    raises an error.

    Args:
        qkv: Projections, [B, T, H, W, 3 C].
        weights: Weight and bias of each gate of ``options``, as in
            :func:`mmvidattn.ops.feature_fixation.fixation_ratio`.
        options: Options.

    Returns:
        [B, T, H, W, C], in the dtype of ``qkv``.
    """
    return _FixatedAttention.apply(qkv, options, *weights)


class _FixatedAttention(torch.autograd.Function):

    @staticmethod
    def forward(ctx: Any, qkv: Tensor, options: Options,
                *weights: Tensor) -> Tensor:
        inputs = _inputs(qkv, options)
        with without_autocast(qkv.device.type):
            wide = _widen(inputs, options)
            ratios = _ratios(wide, weights, options)
            result = torch.empty_like(inputs[0])
            for y, q, k, v, *gates in _slices(options, result, *wide, *ratios):
                q, k = _apply(gates, q, k)
                order, sums, total = _sums(q, k, v, options)
                torch.div(torch.bmm(sums, v) if order == 'left'
                          else torch.bmm(q, sums), total, out=y)
        ctx.options = options
        ctx.save_for_backward(result, *inputs, *weights)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        result, *saved = ctx.saved_tensors
        inputs, weights, options = saved[:3], saved[3:], ctx.options
        qkv_grad = grad.new_empty(*grad.shape[:-1], 3 * grad.shape[-1])
        with without_autocast(grad.device.type):
            wide = _widen(inputs, options)
            ratios = _ratios(wide, weights, options)
            grads = [torch.empty_like(x) for x in (*wide, *ratios)]
            for slices in zip(
                    _slices(options, grad.contiguous(), result),
                    _slices(options, *wide, *ratios),
                    _slices(options, *grads)):
                _attention_gradients(*slices, options)
            weight_grads = _gate_gradients(wide, weights, grads, options)
            for part, x in zip(grads, wide[:2]):
                _map_gradient_(part, x, options)
            for x, part in zip(grads, qkv_grad.chunk(3, dim=-1)):
                shifts = [*options.shifts] if x is not grads[0] else []
                while shifts:
                    x = shift_gradient(
                        x, *shifts.pop(), out=None if shifts else part)
                if x is not part:
                    part.copy_(x)
        return qkv_grad, None, *weight_grads


def _inputs(qkv: Tensor, options: Options) -> list[Tensor]:
    """Return mapped queries and keys, and values, [B, T, H, W, C] each.

    The tensors are new. In half precision, the offset is not added yet: it
    would hide small values.
    """
    parts = q, *kv = qkv.chunk(3, dim=-1)
    for shift in options.shifts:
        kv = [neighbor_shift(x, *shift) for x in kv]
    q, k, v = (x.clone(memory_format=torch.contiguous_format)
               if x is part else x for x, part in zip((q, *kv), parts))
    for x in q, k:
        if options.kernel == 'relu':
            x.relu_()
        elif options.kernel == 'sigmoid':
            x.sigmoid_()
        elif options.kernel == 'elu+1':
            F.elu_(x).add_(1)
    _add_offset([q, k], options, qkv.dtype.itemsize > 2)
    return [q, k, v]


def _widen(inputs: Sequence[Tensor], options: Options) -> list[Tensor]:
    """Return the result of :func:`_inputs` at least in float32."""
    wide = [*at_least_float32(*inputs)]
    _add_offset(wide[:2], options, wide[0] is not inputs[0])
    return wide


def _add_offset(tensors: Sequence[Tensor], options: Options,
                condition: bool) -> None:
    if options.offset and condition:
        for x in tensors:
            x.add_(options.offset)


def _slices(options: Options,
            *tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """View contiguous tokens [B, T, H, W, C] as batches [*, N, D].

    A batch is one head of all clips, or all heads of one clip in time.
    """
    B, T, H, W, _ = tensors[0].shape
    shape = dict(space=(B * T, H * W), joint=(B, T * H * W),
                 time=(B, T, H * W))[options.pattern]
    views = [x.view(*shape, options.num_heads, -1) for x in tensors]
    if options.pattern == 'time':
        return zip(*(x.flatten(2, 3).transpose(1, 2).unbind() for x in views))
    return zip(*(x.unbind(-2) for x in views))


def _apply(gates: Sequence[Tensor], q: Tensor,
           k: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply queries and keys by their ratios, if there are any."""
    return (q * gates[0], k * gates[-1]) if gates else (q, k)


def _sums(q: Tensor, k: Tensor, v: Tensor,
          options: Options) -> tuple[str, Tensor, Tensor]:
    """Return the order, scores or key sums, and the denominator."""
    order = options.order
    if order == 'auto':
        order = cheaper_order(len(q[0]), len(k[0]), k.shape[-1], v.shape[-1])
    if order == 'left':
        sums = torch.bmm(q, k.mT)
        total = sums.sum(-1, keepdim=True)
    else:
        sums, total = torch.bmm(k.mT, v), q @ k.sum(-2).unsqueeze(-1)
    if options.eps == 0:
        total.masked_fill_(total == 0, 1)
    else:
        total.add_(options.eps)
    return order, sums, total


def _attention_gradients(outputs: Sequence[Tensor], inputs: Sequence[Tensor],
                         grads: Sequence[Tensor], options: Options) -> None:
    """Write the gradients of a batch of :func:`_slices`.

    Args:
        outputs: Gradient of the result, and the result.
        inputs: Queries, keys, values and ratios.
        grads: Tensors to write: the gradients of ``inputs``, with ratios
            before the sigmoid.
    """
    grad, y = outputs
    q, k, v, *gates = inputs
    gated_q, gated_k = _apply(gates, q, k)
    order, sums, total = _sums(gated_q, gated_k, v, options)
    grad = grad / total
    loss = (grad * y).sum(-1, keepdim=True)
    if order == 'left':
        score_grad = torch.baddbmm(loss, grad, v.mT, beta=-1)
        q_grad = torch.bmm(score_grad, gated_k)
        k_grad = torch.bmm(score_grad.mT, gated_q)
        v_grad = torch.bmm(sums.mT, grad)
    else:
        sum_grad = torch.bmm(gated_q.mT, grad)
        key_sum, key_loss = gated_k.sum(-2, True), torch.bmm(loss.mT, gated_q)
        q_grad = torch.bmm(grad, sums.mT).addcmul_(loss, key_sum, value=-1)
        k_grad = torch.baddbmm(key_loss, v, sum_grad.mT, beta=-1)
        v_grad = torch.bmm(gated_k, sum_grad)
    grads[2].copy_(v_grad)
    if not gates:
        grads[0].copy_(q_grad)
        grads[1].copy_(k_grad)
        return
    torch.mul(q_grad, gates[0], out=grads[0])
    torch.mul(k_grad, gates[-1], out=grads[1])
    products = [q_grad.mul_(q), k_grad.mul_(k)]
    if len(gates) == 1:
        products = [products[0].add_(products[1])]
    for product, ratio, part in zip(products, gates, grads[3:]):
        part.copy_(torch.ops.aten.sigmoid_backward(product, ratio))


def _ratios(inputs: Sequence[Tensor], weights: Sequence[Tensor],
            options: Options) -> list[Tensor]:
    """Return the ratios of queries and keys, or one for both."""
    ratios = []
    for (names, kind), weight, bias in _gates(weights, options):
        y = None
        for name, piece in zip(names, _pieces(names, kind, weight)):
            x = inputs['qkv'.index(name)].view(-1, len(weight))
            piece = piece.t().to(x.dtype)
            y = (torch.addmm(bias.to(x.dtype), x, piece) if y is None
                 else y.addmm_(x, piece))
        ratios.append(y.sigmoid_().view(inputs[0].shape))
    return ratios


def _gates(weights: Sequence[Tensor], options: Options
           ) -> Iterator[tuple[Gate, Tensor, Tensor]]:
    """Iterate over gates with weight and bias."""
    gates = [gate for gate in (options.q_gate, options.k_gate) if gate]
    return zip(gates, weights[::2], weights[1::2])


def _pieces(names: str, kind: str, weight: Tensor) -> Sequence[Tensor]:
    """Return the part of a map for each of its inputs."""
    if kind == 'concat':
        return weight.chunk(len(names), dim=1)
    return [weight] * len(names)


def _gate_gradients(inputs: Sequence[Tensor], weights: Sequence[Tensor],
                    grads: Sequence[Tensor], options: Options) -> list[Tensor]:
    """Return the gradients of weights, and continue ``grads`` in place.

    Args:
        inputs: Queries, keys and values.
        weights: Weight and bias of each gate.
        grads: Gradients of gated queries, gated keys, values, and ratios
            before the sigmoid. The first three become the gradients of
            ``inputs``.
        options: Options.
    """
    results = []
    for ((names, kind), weight, bias), grad in zip(
            _gates(weights, options), grads[3:]):
        grad = grad.view(-1, len(weight))
        parts = []
        for name, piece in zip(names, _pieces(names, kind, weight)):
            i = 'qkv'.index(name)
            parts.append(grad.t() @ inputs[i].view(grad.shape))
            grads[i].view(grad.shape).addmm_(grad, piece.to(grad.dtype))
        total = torch.cat(parts, dim=1) if kind == 'concat' else sum(parts)
        results += [total.to(weight.dtype), grad.sum(dim=0).to(bias.dtype)]
    return results


def _map_gradient_(grad: Tensor, y: Tensor, options: Options) -> None:
    """Multiply by the derivative of the feature map with the result y."""
    if options.kernel == 'relu':
        torch.ops.aten.threshold_backward.grad_input(
            grad, y, options.offset, grad_input=grad)
    elif options.kernel != 'identity':
        y = y - options.offset
        grad.mul_(y.mul_(1 - y) if options.kernel == 'sigmoid'
                  else y.clamp_max_(1))
