# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All of linear attention between the two projections of its layer."""
import torch
from torch import Tensor

from .dispatch import (
    dispatched,
    needs_gradients,
    not_eager_autograd,
    register_backend,
)
from .feature_fixation import Gate, fixate
from .feature_maps import feature_map
from .linear_attention import linear_attention
from .shift import Fold, neighbor_shift
from .token_sequences import PATTERNS, from_sequences, to_sequences
from .triton.available import capability, why_no_kernel, why_not_fits

DTYPES = torch.float32, torch.bfloat16, torch.float16
# Widths of a head that the kernels are compiled for.
HEAD_DIMS = 16, 128


@dispatched
def video_linear_attention(qkv: Tensor,
                           *,
                           num_heads: int,
                           pattern: str = 'joint',
                           folds: tuple[Fold, ...] = (),
                           segment_frames: int | None = None,
                           kernel: str = 'relu',
                           offset: float = 0.,
                           gate: Gate | None = None,
                           order: str = 'auto',
                           eps: float = 1e-6) -> Tensor:
    """Neighborhood association, feature fixation and linear attention.

    Secs. 4.1 to 4.3 of *Linear Video Transformer with Feature Fixation*:
    keys and values are shifted, queries and keys mapped and reweighted, and
    attention is that of :func:`mmvidattn.ops.linear_attention`.

    Args:
        qkv: Queries, keys and values of G heads of width D = C / G, side by
            side, [B, T, H, W, 3 C].
        num_heads: Heads G.
        pattern: 'space', 'time' or 'joint', see
            :func:`mmvidattn.ops.token_sequences.to_sequences`.
        folds: The shift, of :func:`mmvidattn.ops.shift_plan`.
        segment_frames: Frames between which tokens are shifted; None for T.
        kernel: Of :func:`mmvidattn.ops.feature_map`, also for ``offset``.
        offset: Added to mapped queries and keys.
        gate: Of :func:`mmvidattn.ops.fixate`, or None.
        order: Of :func:`mmvidattn.ops.linear_attention`, also for ``eps``.
        eps: Added to the denominator.

    Returns:
        [B, T, H, W, C].

    Raises:
        ValueError: If the heads do not divide the channels, or the pattern
            is unknown.
    """
    C = qkv.shape[-1]
    if qkv.dim() != 5 or C % (3 * num_heads):
        raise ValueError(
            'video_linear_attention takes qkv [B, T, H, W, 3 C], C a '
            f'multiple of num_heads={num_heads}, got {tuple(qkv.shape)}')
    if pattern not in PATTERNS:
        raise ValueError(
            f'pattern must be one of {PATTERNS}, got {pattern!r}')
    q, kv = qkv.unflatten(-1, (3, C // 3)).split((1, 2), dim=-2)
    k, v = neighbor_shift(kv, folds, segment_frames).unbind(-2)
    q, k, v = (x.unflatten(-1, (num_heads, -1))
               for x in (q.squeeze(-2), k, v))
    q, k = feature_map(q, kernel, offset), feature_map(k, kernel, offset)
    if gate is not None:
        q, k = fixate(q, k, v, gate)
    y = linear_attention(
        *(to_sequences(x, pattern) for x in (q, k, v)), order=order, eps=eps)
    return from_sequences(y, pattern, tuple(qkv.shape[1:4])).flatten(-2)


def _kind(gate: Gate | None) -> str:
    """The gate's name in the kernels."""
    if gate is None:
        return 'none'
    if gate.inputs == 'own':
        return 'separate'
    return 'shared' if gate.k_weight is None else 'unshared'


def _by_triton(qkv: Tensor,
               *,
               num_heads: int,
               pattern: str = 'joint',
               folds: tuple[Fold, ...] = (),
               segment_frames: int | None = None,
               kernel: str = 'relu',
               offset: float = 0.,
               gate: Gate | None = None,
               order: str = 'auto',
               eps: float = 1e-6) -> Tensor:
    from .triton.video_linear_attention import fused

    q_weight = q_bias = k_weight = k_bias = None
    inputs = 0
    if gate is not None:
        q_weight, q_bias, k_weight, k_bias, names, aggregate = gate
        inputs = 1 if names == 'own' else len(names)
        if aggregate == 'add':
            q_weight, k_weight = (
                None if x is None else torch.cat([x] * inputs, 1)
                for x in (q_weight, k_weight))
    return fused(
        qkv, q_weight, q_bias, k_weight, k_bias, num_heads, pattern,
        _kind(gate),
        inputs, [n for start, stop, offsets, boundary in folds
                 for n in (start, stop, *offsets, boundary == 'self')],
        segment_frames or qkv.shape[1], kernel, offset, eps)[0]


def _why_not_triton(qkv: Tensor,
                    *,
                    num_heads: int,
                    pattern: str = 'joint',
                    folds: tuple[Fold, ...] = (),
                    segment_frames: int | None = None,
                    kernel: str = 'relu',
                    offset: float = 0.,
                    gate: Gate | None = None,
                    order: str = 'auto',
                    eps: float = 1e-6) -> str | None:
    reason = why_no_kernel(qkv) or not_eager_autograd()
    if reason:
        return reason
    if qkv.dtype not in DTYPES:
        return f'no kernel in {qkv.dtype}'
    if qkv.dim() != 5 or qkv.shape[-1] % (3 * num_heads) or \
            pattern not in PATTERNS:
        return 'not the shape or pattern of tokens'
    head_dims = qkv.shape[-1] // (3 * num_heads)
    if not HEAD_DIMS[0] <= head_dims <= HEAD_DIMS[1]:
        return 'heads narrower than {} or wider than {}'.format(*HEAD_DIMS)
    training = needs_gradients(qkv, *(
        () if gate is None else (x for x in gate[:4] if x is not None)))
    reason = why_not_fits(qkv.dtype, head_dims, _kind(gate), training,
                          capability(qkv.device))
    if reason:
        return reason
    if any(fold.boundary == 'replicate' for fold in folds):
        return 'replicated borders'
    if segment_frames is not None and qkv.shape[1] % segment_frames:
        return 'no multiple of segment_frames'
    if gate is not None and gate.aggregate == 'mul':
        return "a gate of products ('mul')"
    if not eps > 0:
        return 'eps is not positive'
    return None


register_backend(
    video_linear_attention,
    'Triton',
    _by_triton,
    _why_not_triton,
    where='CUDA; see below',
    gain='not measured')
