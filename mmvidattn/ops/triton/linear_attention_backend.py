# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Triton backend of ``video_linear_attention``: verifier and call."""
import torch
from torch import Tensor

from ..dispatch import needs_gradients, not_eager_autograd, register_backend
from ..feature_fixation import gate_kind
from ..token_sequences import PATTERNS
from ..video_linear_attention import Options, video_linear_attention
from .available import capability, why_no_kernel, why_not_fits

DTYPES = torch.float32, torch.bfloat16, torch.float16
# Minimum and maximum width of a head in the kernels.
HEAD_DIMS = 16, 128


def _by_triton(qkv: Tensor, options: Options) -> Tensor:
    from .video_linear_attention import fused

    gate = options.gate
    q_weight = q_bias = k_weight = k_bias = None
    num_inputs = 0
    if gate is not None:
        q_weight, q_bias, k_weight, k_bias, mode, inputs, aggregate = gate
        num_inputs = 1 if mode == 'separate' else len(inputs)
        if aggregate == 'add':
            q_weight, k_weight = (
                None if x is None else torch.cat([x] * num_inputs, 1)
                for x in (q_weight, k_weight))
    return fused(
        qkv, q_weight, q_bias, k_weight, k_bias, options.num_heads,
        options.pattern, gate_kind(gate), num_inputs,
        [n for start, stop, offsets, boundary in options.folds
         for n in (start, stop, *offsets, boundary == 'self')],
        options.segment_frames or qkv.shape[1], options.kernel,
        options.offset, options.eps)[0]


def _why_not_triton(qkv: Tensor, options: Options) -> str | None:
    reason = why_no_kernel(qkv) or not_eager_autograd()
    if reason:
        return reason
    num_heads, gate = options.num_heads, options.gate
    if qkv.dtype not in DTYPES:
        return f'no kernel in {qkv.dtype}'
    if qkv.dim() != 5 or qkv.shape[-1] % (3 * num_heads) or \
            options.pattern not in PATTERNS:
        return 'wrong shape or pattern'
    head_dims = qkv.shape[-1] // (3 * num_heads)
    if not HEAD_DIMS[0] <= head_dims <= HEAD_DIMS[1]:
        return 'heads narrower than {} or wider than {}'.format(*HEAD_DIMS)
    training = needs_gradients(qkv, *(
        () if gate is None else (x for x in gate[:4] if x is not None)))
    reason = why_not_fits(qkv.dtype, head_dims, gate_kind(gate), training,
                          capability(qkv.device))
    if reason:
        return reason
    if any(fold.boundary == 'replicate' for fold in options.folds):
        return 'replicated borders'
    segment_frames = options.segment_frames
    if segment_frames is not None and qkv.shape[1] % segment_frames:
        return 'the clip length is not a multiple of segment_frames'
    if gate is not None and gate.aggregate == 'mul':
        return "a gate with aggregate='mul'"
    if not options.eps > 0:
        return 'eps is not positive'
    return None


register_backend(
    video_linear_attention,
    'Triton',
    _by_triton,
    _why_not_triton,
    where='CUDA; see below')
