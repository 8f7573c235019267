# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Training of linear attention with shifts and feature fixation."""
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from .feature_fixation import naive_fixation_ratio
from .feature_maps import feature_map
from .linear_attention import cheaper_order, naive_linear_attention
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


def fixated_attention(qkv: Tensor, weights: Sequence[Tensor],
                      options: Options) -> Tensor:
    """Shift keys and values, map and gate queries and keys, and attend.

    For training: only mapped queries and keys, and values are kept for the
    backward pass, which computes the gates again. A second derivative raises
    an error.

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
            q, k, v = wide = _widen(inputs, options)
            ratios = _ratios(wide, weights, options)
            if ratios:
                q, k = q * ratios[0], k * ratios[-1]
            y = qkv.new_empty(*qkv.shape[:-1], qkv.shape[-1] // 3)
            _write(_attend(q, k, v, options)[0], y, options)
        ctx.options = options
        ctx.save_for_backward(*inputs, *weights)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        inputs, weights = saved[:3], saved[3:]
        options = ctx.options
        result = grad.new_empty(*grad.shape[:-1], 3 * grad.shape[-1])
        with without_autocast(grad.device.type):
            q, k, v = wide = _widen(inputs, options)
            ratios = _ratios(wide, weights, options)
            if ratios:
                q, k = q * ratios[0], k * ratios[-1]
            grads = _attention_gradients(
                q, k, v, _heads(grad, options, q.dtype), options)
            del q, k
            weight_grads = _gate_gradients(
                wide, ratios, weights, grads, options)
            for grad, x in zip(grads, wide[:2]):
                _map_gradient_(grad, x, options)
            q_part, kv_part = result.unflatten(-1, (3, -1)).split(
                (1, 2), dim=-2)
            _write(grads[0], q_part.squeeze(-2), options)
            kv = (kv_part if not options.shifts
                  else torch.empty_like(kv_part, dtype=v.dtype))
            for x, part in zip(grads[1:], kv.unbind(-2)):
                _write(x, part, options)
            for i, shift in reversed([*enumerate(options.shifts)]):
                kv = shift_gradient(kv, *shift, out=None if i else kv_part)
        return result, None, *weight_grads


def _inputs(qkv: Tensor, options: Options) -> list[Tensor]:
    """Return mapped queries and keys, and values, [S, N, D] each.

    S are the sequences of all heads. The tensors are new. In half precision,
    the offset is not added yet: it would hide small values.
    """
    q, kv = qkv.unflatten(-1, (3, -1)).split((1, 2), dim=-2)
    for shift in options.shifts:
        kv = neighbor_shift(kv, *shift)
    q, k, v = (_heads(x, options, qkv.dtype)
               for x in (q.squeeze(-2), *kv.unbind(-2)))
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


def _heads(x: Tensor, options: Options, dtype: torch.dtype) -> Tensor:
    """Copy tokens [B, T, H, W, C] to sequences of heads, [S, N, D]."""
    x = _by_head(x, options)
    y = torch.empty(x.shape, dtype=dtype, device=x.device)
    return y.copy_(x).flatten(0, -3)


def _write(x: Tensor, y: Tensor, options: Options) -> None:
    """Write sequences of heads [S, N, D] to tokens y [B, T, H, W, C]."""
    y = _by_head(y, options)
    y.copy_(x.view(y.shape))


def _by_head(x: Tensor, options: Options) -> Tensor:
    """View tokens [B, T, H, W, C] as [*, G, N, D]."""
    B, T, H, W, _ = x.shape
    x = x.unflatten(-1, (options.num_heads, -1))
    if options.pattern == 'time':
        return x.permute(0, 2, 3, 4, 1, 5)
    frames = 1 if options.pattern == 'space' else T
    return x.reshape(-1, frames * H * W, *x.shape[4:]).transpose(1, 2)


def _attend(q: Tensor, k: Tensor, v: Tensor,
            options: Options) -> tuple[Tensor, ...]:
    """Return the result, its denominator, and scores or key sums."""
    order = options.order
    if order == 'auto':
        order = cheaper_order(len(q[0]), len(k[0]), k.shape[-1], v.shape[-1])
    if order == 'left':
        sums = torch.bmm(q, k.mT)
        y, total = torch.bmm(sums, v), sums.sum(-1, keepdim=True)
    else:
        sums = torch.bmm(k.mT, v)
        y, total = torch.bmm(q, sums), q @ k.sum(-2).unsqueeze(-1)
    if options.eps == 0:
        total.masked_fill_(total == 0, 1)
    else:
        total.add_(options.eps)
    return y.div_(total), total, sums, order


def _attention_gradients(q: Tensor, k: Tensor, v: Tensor, grad: Tensor,
                         options: Options) -> list[Tensor]:
    """Return the gradients of queries, keys and values, [S, N, D] each."""
    y, total, sums, order = _attend(q, k, v, options)
    grad.div_(total)
    loss = y.mul_(grad).sum(-1, keepdim=True)
    if order == 'left':
        score_grad = torch.baddbmm(loss, grad, v.mT, beta=-1)
        return [torch.bmm(score_grad, k), torch.bmm(score_grad.mT, q),
                torch.bmm(sums.mT, grad)]
    sum_grad = torch.bmm(q.mT, grad)
    key_sum, key_loss = k.sum(-2, keepdim=True), torch.bmm(loss.mT, q)
    return [torch.bmm(grad, sums.mT).addcmul_(loss, key_sum, value=-1),
            torch.baddbmm(key_loss, v, sum_grad.mT, beta=-1),
            torch.bmm(k, sum_grad)]


def _ratios(inputs: Sequence[Tensor], weights: Sequence[Tensor],
            options: Options) -> list[Tensor]:
    """Return the ratios of queries and keys, or one for both."""
    ratios = []
    for (names, kind), weight, bias in _gates(weights, options):
        y = None
        for name, piece in zip(names, _pieces(names, kind, weight)):
            x = inputs['qkv'.index(name)].flatten(0, 1)
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


def _gate_gradients(inputs: Sequence[Tensor], ratios: Sequence[Tensor],
                    weights: Sequence[Tensor], grads: Sequence[Tensor],
                    options: Options) -> list[Tensor]:
    """Return the gradients of weights, and continue ``grads`` in place.

    Args:
        inputs, ratios: Inputs and results of the gates.
        weights: Weight and bias of each gate.
        grads: Gradients of gated queries, gated keys and values; become those
            of ``inputs``.
        options: Options.
    """
    if not ratios:
        return []
    products = [grad * x for grad, x in zip(grads, inputs[:2])]
    if options.k_gate is None:
        products = [products[0].add_(products[1])]
    grads[0].mul_(ratios[0])
    grads[1].mul_(ratios[-1])
    results = []
    for ((names, kind), weight, bias), grad, ratio in zip(
            _gates(weights, options), products, ratios):
        grad = torch.ops.aten.sigmoid_backward(grad, ratio).flatten(0, 1)
        parts = []
        for name, piece in zip(names, _pieces(names, kind, weight)):
            i = 'qkv'.index(name)
            parts.append(grad.t() @ inputs[i].flatten(0, 1))
            grads[i].flatten(0, 1).addmm_(grad, piece.to(grad.dtype))
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
