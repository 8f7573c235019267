# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Linear attention to the current and all previous frames of a stream."""
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from .precision import at_least_float32, needs_gradients, without_autocast

# Decayed sums over all tokens, [B, G, D, E + 1], and their rounding errors.
# Column E is the normalizer.
State = tuple[Tensor, Tensor]


def frame_causal_linear_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        decay: Tensor | None = None,
        state: State | None = None,
        elapsed: Tensor | None = None,
        *,
        eps: float = 1e-6,
        chunk_frames: int = 16) -> tuple[Tensor, State]:
    r"""Attend to the tokens of the current and all previous frames.

    For a token i of frame t, with t_j the time of token j's frame,

    .. math:: y_i = \frac{q_i S_t}{q_i z_t + eps}, \quad
        S_t = \sum_{t_j \le t} e^{-rate (t - t_j)} k_j^T v_j, \quad
        z_t = \sum_{t_j \le t} e^{-rate (t - t_j)} k_j.

    The state is S and z after the last frame. Each frame therefore has the
    same cost, and a stream that is split at any frame gives the same results
    as one pass.

    Sums are at least float32, also under autocast, and their rounding errors
    are carried over in bfloat16 (Kahan summation). A float32 sum alone would
    ignore new frames after 10^7 frames without decay; this sum does not. The
    sums of 10^7 frames are far below float32's maximum.

    Clips are processed in chunks of frames. With gradients, the backward pass
    recomputes each chunk, and only the states between chunks are kept.

    Args:
        q: Queries after a non-negative :func:`mmvidattn.ops.feature_map`,
            [B, T, N, G, D], for T >= 1 frames of N tokens.
        k: Keys after the same feature map, [B, T, N, G, D].
        v: Values, [B, T, N, G, E].
        decay: Rate of each head, [G], not negative: the weight of a frame is
            multiplied by ``exp(-rate)`` per nominal interval between frames.
            Defaults to None, for no decay.
        state: State after the previous frames, from
            :func:`initial_frame_sums` or an earlier call. Defaults to the
            start of a stream.
        elapsed: Time since the previous frame in nominal intervals, [B, T].
            Defaults to 1.
        eps: Added to the denominator. Defaults to 1e-6.
        chunk_frames: Frames of a chunk. Defaults to 16.

    Returns:
        The result [B, T, N, G, E] in the dtype of ``v``, and the state after
        the last frame.

    Raises:
        ValueError: If the shapes do not fit.
    """
    if q.dim() != 5 or q.shape != k.shape or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            'frame_causal_linear_attention takes q and k [B, T, N, G, D] and '
            f'v [B, T, N, G, E], got {tuple(q.shape)}, {tuple(k.shape)} and '
            f'{tuple(v.shape)}')
    B, T, _, G, D = q.shape
    if elapsed is not None and elapsed.shape != (B, T):
        raise ValueError(f'elapsed must have the shape [B, T] = {(B, T)}, '
                         f'got {tuple(elapsed.shape)}')
    if state is None:
        state = initial_frame_sums(v, D)
    log_decay = None
    if decay is not None:
        rate = decay.to(state[0].dtype)
        log_decay = -rate.expand(B, T, G) if elapsed is None else (
            -rate * elapsed.to(rate.dtype).unsqueeze(-1))
    attend = partial(_attend, eps=eps)
    if T <= chunk_frames:
        return attend(q, k, v, log_decay, *state)
    if needs_gradients(q, k, v, *state, *(() if decay is None else (decay,))):
        attend = partial(checkpoint, attend, use_reentrant=False,
                         preserve_rng_state=False)
    # The gradient of x[:, a:b] is as large as x; split has one for all chunks.
    chunks = [(None, ) * T if x is None else x.split(chunk_frames, dim=1)
              for x in (q, k, v, log_decay)]
    parts = []
    for chunk in zip(*chunks):
        y, state = attend(*chunk, *state)
        parts.append(y)
    # Autocast on a CPU cannot join float16.
    with without_autocast(v.device.type):
        return torch.cat(parts, dim=1), state


def initial_frame_sums(v: Tensor, head_dims: int) -> State:
    """Return the first state for values [B, T, N, G, E] and head width D."""
    wide, = at_least_float32(v[:0])
    B, _, _, G, E = v.shape
    sums = wide.new_zeros(B, G, head_dims, E + 1)
    return sums, torch.zeros_like(sums, dtype=torch.bfloat16)


def decay_frame_sums(state: State, decay: Tensor, elapsed: Tensor) -> State:
    """Decay a state by rates [G] over nominal intervals [B]."""
    sums = state[0]
    log_decay = -decay.to(sums.dtype) * elapsed.to(sums.dtype).unsqueeze(-1)
    return _add(*state, log_decay, torch.zeros_like(sums))


def _attend(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor | None,
            sums: Tensor, carry: Tensor, eps: float) -> tuple[Tensor, State]:
    """Attend from the frames of one chunk.

    Args:
        q: [B, T, N, G, D].
        k: [B, T, N, G, D].
        v: [B, T, N, G, E].
        log_decay: Logarithm of the decay from the previous frame to each
            frame, [B, T, G], or None.
        sums: [B, G, D, E + 1].
        carry: [B, G, D, E + 1].
        eps: Added to the denominator.
    """
    dtype, T = v.dtype, v.shape[1]
    with without_autocast(v.device.type):
        q, k, v, sums = at_least_float32(q, k, v, sums)
        q, k, v = (x.transpose(2, 3) for x in (q, k, v))
        # A column of ones adds up the normalizer. Contiguous factors are
        # multiplied twice as fast on a CPU.
        added = k.contiguous().mT @ F.pad(v, (0, 1), value=1.)
        if T == 1:
            state = _add(sums, carry,
                         None if log_decay is None else log_decay[:, 0],
                         added[:, 0])
            total = state[0].unsqueeze(1)
        elif log_decay is None:
            added = added.cumsum(dim=1)
            state = _add(sums, carry, None, added[:, -1])
            total = sums.unsqueeze(1) + added
        else:
            # [B, G, T]; time since the state. In float64, because after a
            # long gap the differences of float32 ages would be rounded.
            age = log_decay.double().cumsum(dim=1).mT
            future = torch.ones(
                T, T, dtype=torch.bool, device=age.device).triu(1)
            weights = (age.unsqueeze(-1) - age.unsqueeze(-2)).masked_fill(
                future, -torch.inf).exp().to(added.dtype)
            added = torch.einsum('bgts,bsgde->btgde', weights, added)
            state = _add(sums, carry, age[..., -1], added[:, -1])
            past = age.mT.exp().to(sums.dtype)[..., None, None]
            total = added + sums.unsqueeze(1) * past
        y = q @ total
        y = y[..., :-1] / (y[..., -1:] + eps)
    return y.transpose(2, 3).to(dtype), state


def _add(sums: Tensor, carry: Tensor, log_decay: Tensor | None,
         added: Tensor) -> State:
    """Decay sums and add to them, by Kahan summation.

    Args:
        sums: [B, G, D, E + 1].
        carry: Part of the sums that rounding has removed, [B, G, D, E + 1].
        log_decay: Logarithm of the decay, [B, G], or None.
        added: [B, G, D, E + 1].
    """
    change = added + carry
    if log_decay is not None:
        # For a slow decay, exp(log_decay) would be rounded to 1. In float64,
        # because compilers and ONNX replace expm1(x) by exp(x) - 1.
        less = torch.expm1(log_decay.double())[..., None, None].to(sums.dtype)
        change = change + less * (sums + carry)
    new = sums + change
    # The gradient of a rounding error is zero.
    change = change.detach() - (new.detach() - sums.detach())
    return new, change.to(carry.dtype)


def naive_frame_causal_linear_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        decay: Tensor | None = None,
        elapsed: Tensor | None = None,
        eps: float = 1e-6) -> Tensor:
    """Reference for entire streams: the masked matrix of all tokens."""
    B, T, N, G, _ = q.shape
    elapsed = q.new_ones(B, T) if elapsed is None else elapsed
    decay = q.new_zeros(G) if decay is None else decay
    times = elapsed.cumsum(dim=1).repeat_interleave(N, dim=1)
    age = times[:, :, None] - times[:, None]
    frames = torch.arange(T, device=q.device).repeat_interleave(N)
    seen = frames[:, None] >= frames
    weights = (-decay[:, None, None] * age.where(seen, 0)[:, None]).exp()
    q, k, v = (x.flatten(1, 2).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT * weights * seen
    y = scores @ v / (scores.sum(dim=-1, keepdim=True) + eps)
    return y.transpose(1, 2).unflatten(1, (T, N))
