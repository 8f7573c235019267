# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Softmax attention in bfloat16 on a CPU, a block of scores at a time.

torch's fused attention is no faster in bfloat16 than in float32 on a CPU with
AVX512_BF16 but no AMX. Its products alone are twice as fast by oneDNN, and a
block of scores that stays in the cache costs little to pass between them.
"""
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from .dispatch import is_known, not_eager_autograd
from .precision import without_autocast

# Of a block: 2 MB of them, which caches hold.
MOST_SCORES = 2**20
# Scores from which this outweighs the calls that it takes.
LEAST_SCORES = 2**16


def _has_bfloat16_without_amx() -> bool:
    # torch has no public names for these, and had other ones.
    has_bfloat16, has_amx = (
        getattr(torch.cpu, f'_is_{name}_supported', lambda: None)()
        for name in ('avx512_bf16', 'amx_tile'))
    return (torch.backends.mkldnn.is_available() and bool(has_bfloat16)
            and has_amx is False)


_IS_FASTER = _has_bfloat16_without_amx()


@torch.library.custom_op('mmvidattn::attention_by_blocks', mutates_args=())
def attention_by_blocks(q: Tensor, k: Tensor, v: Tensor,
                        scale: float) -> Tensor:
    """``softmax(scale Q K^T) V``; sums are float32, scores rounded.

    Args:
        q: [P, N, D], contiguous as all are.
        k: [P, M, D].
        v: [P, M, E].
        scale: Of the scores.

    Returns:
        [P, N, E].
    """
    y = v.new_empty(*q.shape[:2], v.shape[2])
    with without_autocast('cpu'):
        for heads, rows in _blocks(q, k):
            y[heads, rows] = _weights(q[heads, rows], k[heads],
                                      scale) @ v[heads]
    return y


@attention_by_blocks.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
    return v.new_empty(*q.shape[:2], v.shape[2])


@torch.library.custom_op(
    'mmvidattn::attention_by_blocks_backward', mutates_args=())
def attention_by_blocks_backward(
        grad: Tensor, q: Tensor, k: Tensor, v: Tensor,
        scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v; the weights are computed once more."""
    of_q = torch.empty_like(q)
    of_k, of_v = (torch.zeros_like(x, dtype=torch.float32) for x in (k, v))
    with without_autocast('cpu'):
        for heads, rows in _blocks(q, k):
            queries, keys, g = q[heads, rows], k[heads], grad[heads, rows]
            weights = _weights(queries, keys, scale)
            of_v[heads] += weights.mT @ g
            of_scores = torch._softmax_backward_data(
                g @ v[heads].mT, weights, -1, weights.dtype)
            of_q[heads, rows] = scale * (of_scores @ keys)
            of_k[heads] += of_scores.mT @ queries
    return of_q, (scale * of_k).to(k.dtype), of_v.to(v.dtype)


@attention_by_blocks_backward.register_fake
def _(grad: Tensor, q: Tensor, k: Tensor, v: Tensor,
      scale: float) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _blocks(q: Tensor, k: Tensor) -> Iterator[tuple[slice, slice]]:
    """Heads and queries of each block: of one head, or of whole ones."""
    (num_heads, num_queries), num_keys = q.shape[:2], k.shape[1]
    # Blocks of a head are of one size, or nearly.
    parts = -(-num_queries * num_keys // MOST_SCORES)
    rows = -(-num_queries // parts)
    heads = max(1, MOST_SCORES // (num_queries * num_keys))
    for head in range(0, num_heads, heads):
        for row in range(0, num_queries, rows):
            yield slice(head, head + heads), slice(row, row + rows)


def _weights(q: Tensor, k: Tensor, scale: float) -> Tensor:
    scores = q.new_empty(*q.shape[:2], k.shape[1])
    torch.baddbmm(scores, q, k.mT, beta=0, alpha=scale, out=scores)
    return torch.softmax(scores, dim=-1, out=scores)


def _keep_inputs(ctx, inputs: tuple, output: Tensor) -> None:
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def _gradients(ctx, grad: Tensor) -> tuple[Tensor | None, ...]:
    return *attention_by_blocks_backward(
        grad.contiguous(), *ctx.saved_tensors, ctx.scale), None


attention_by_blocks.register_autograd(_gradients, setup_context=_keep_inputs)


@register_flop_formula(torch.ops.mmvidattn.attention_by_blocks)
def _flops(q_shape: torch.Size, k_shape: torch.Size, v_shape: torch.Size,
           *args, out_shape: torch.Size | None = None, **kwargs) -> int:
    scores = q_shape[0] * q_shape[1] * k_shape[1]
    return 2 * scores * (q_shape[2] + v_shape[2])


@register_flop_formula(torch.ops.mmvidattn.attention_by_blocks_backward)
def _backward_flops(grad_shape: torch.Size, q_shape: torch.Size,
                    k_shape: torch.Size, v_shape: torch.Size, *args,
                    out_shape: tuple | None = None, **kwargs) -> int:
    scores = q_shape[0] * q_shape[1] * k_shape[1]
    return 2 * scores * (3 * q_shape[2] + 2 * v_shape[2])


def softmax_attention_by_blocks(q: Tensor,
                                k: Tensor,
                                v: Tensor,
                                *,
                                scale: float | None = None,
                                **unused) -> Tensor:
    """As :func:`mmvidattn.ops.softmax_attention`, where it fits."""
    scale = q.shape[-1]**-0.5 if scale is None else scale
    y = attention_by_blocks(
        *(x.transpose(-3, -2).flatten(0, -3).contiguous()
          for x in (q, k, v)), scale)
    return y.view(*q.shape[:-3], q.shape[-2], *y.shape[1:]).transpose(-3, -2)


def why_not_by_blocks(q: Tensor,
                      k: Tensor,
                      v: Tensor,
                      *,
                      scale: float | None = None,
                      dropout_p: float = 0.,
                      key_mask: Tensor | None = None,
                      bias: Tensor | None = None) -> str | None:
    """Reason not to run :func:`softmax_attention_by_blocks`, or None."""
    if not _IS_FASTER:
        return 'no CPU with AVX512_BF16 and without AMX'
    reason = not_eager_autograd()
    if reason:
        return reason
    if q.device.type != 'cpu':
        return 'not on a CPU'
    if not q.dtype == k.dtype == v.dtype == torch.bfloat16:
        return 'not in bfloat16'
    if dropout_p or key_mask is not None or bias is not None:
        return 'with dropout, a mask or a bias'
    if q.shape[-2:] != k.shape[-2:] or k.shape[:-1] != v.shape[:-1] or \
            q.shape[:-3] != k.shape[:-3] or q.dim() < 3:
        return 'wrong shapes'
    if is_known(q.numel() // q.shape[-1] * k.shape[-3] < LEAST_SCORES):
        return 'too little to do'
    return None
