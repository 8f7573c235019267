# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Softmax attention to the latest frames of a stream."""
import torch
from torch import Tensor

from .precision import at_least_float32
from .softmax_attention import naive_softmax_attention, softmax_attention

# Keys and values of the previous frames, [B, W - 1, N, G, D], and the ages of
# these frames, [B, W - 1], infinite before the first frame.
State = tuple[Tensor, Tensor, Tensor]


def frame_causal_softmax_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        window_frames: int,
        decay: Tensor | None = None,
        state: State | None = None,
        elapsed: Tensor | None = None,
        dropout_p: float = 0.) -> tuple[Tensor, State]:
    """Attend to the tokens of the latest W frames of a stream.

    A token of frame t attends to all tokens of frames t - W + 1 to t. With
    ``decay``, the score of a token is reduced by its age times the rate, so
    that its weight is multiplied by ``exp(-rate * age)``. Ages are durations;
    W counts frames. The state contains the last W - 1 frames. A stream that is
    split at any frame therefore gives the same results as one pass.

    Long clips are processed in parts of W frames, so the cost is linear in
    their length.

    Args:
        q: Queries, [B, T, N, G, D], for T >= 1 frames of N tokens.
        k: Keys, [B, T, N, G, D].
        v: Values, [B, T, N, G, E].
        window_frames: Frames W that a token attends to, including its own.
        decay: Rate of each head, [G], not negative, per nominal interval
            between frames. Defaults to None, for no decay.
        state: State after the previous frames, from
            :func:`initial_frame_window` or an earlier call. Defaults to the
            start of a stream.
        elapsed: Time since the previous frame in nominal intervals, [B, T].
            Defaults to 1.
        dropout_p: Probability of dropping an attention weight. Defaults to 0.

    Returns:
        The result [B, T, N, G, E], and the state after the last frame.

    Raises:
        ValueError: If the shapes do not fit.
    """
    if q.dim() != 5 or q.shape != k.shape or k.shape[:-1] != v.shape[:-1]:
        raise ValueError(
            'frame_causal_softmax_attention takes q and k [B, T, N, G, D] and '
            f'v [B, T, N, G, E], got {tuple(q.shape)}, {tuple(k.shape)} and '
            f'{tuple(v.shape)}')
    if window_frames < 1:
        raise ValueError(f'window_frames must be at least 1, got '
                         f'{window_frames}')
    if state is None:
        state = initial_frame_window(k, v, window_frames)
    if elapsed is None:
        elapsed = state[2].new_ones(q.shape[:2])
    parts = []
    for part in zip(*(x.split(window_frames, dim=1)
                      for x in (q, k, v, elapsed))):
        y, state = _attend(*part, window_frames, decay, state, dropout_p)
        parts.append(y)
    return torch.cat(parts, dim=1) if len(parts) > 1 else parts[0], state


def initial_frame_window(k: Tensor, v: Tensor, window_frames: int) -> State:
    """Return the first state for k [B, T, N, G, D] and v [B, T, N, G, E]."""
    past = window_frames - 1
    ages = torch.full((k.shape[0], past), torch.inf, device=k.device,
                      dtype=at_least_float32(k)[0].dtype)
    return (k.new_zeros(k.shape[0], past, *k.shape[2:]),
            v.new_zeros(v.shape[0], past, *v.shape[2:]), ages)


def _attend(q: Tensor, k: Tensor, v: Tensor, elapsed: Tensor,
            window_frames: int, decay: Tensor | None, state: State,
            dropout_p: float) -> tuple[Tensor, State]:
    """Attend from at most W frames."""
    T, N = q.shape[1:3]
    past = window_frames - 1
    k = torch.cat([state[0].to(k.dtype), k], dim=1)
    v = torch.cat([state[1].to(v.dtype), v], dim=1)
    # Times relative to the last frame of the state.
    now = elapsed.to(state[2].dtype).cumsum(dim=1)
    times = torch.cat([-state[2], now], dim=1)
    ages = now[:, :, None] - times[:, None]
    index = torch.arange(past + T, device=q.device)
    query = index[:T, None]
    seen = (index >= query) & (index <= query + past)
    seen = seen & ages.isfinite()
    bias = torch.zeros_like(ages).masked_fill(~seen, -torch.inf)[:, None]
    if decay is not None:
        # Ignore ages of unseen frames, which may be infinite: 0 times infinity
        # is NaN.
        bias = bias - decay.to(bias.dtype)[:, None, None] * ages.where(
            seen, 0)[:, None]
    # Every token of a frame has the bias of the frame.
    bias = bias.repeat_interleave(N, dim=2).repeat_interleave(N, dim=3)
    y = softmax_attention(
        *(x.flatten(1, 2) for x in (q, k, v)), dropout_p=dropout_p,
        bias=bias)
    last = (now[:, -1:] - times)[:, T:]
    return y.unflatten(1, (T, N)), (k[:, T:], v[:, T:], last)


def naive_frame_causal_softmax_attention(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        window_frames: int,
        decay: Tensor | None = None,
        elapsed: Tensor | None = None) -> Tensor:
    """Reference for entire streams: one masked softmax over all tokens."""
    B, T, N, G, _ = q.shape
    elapsed = q.new_ones(B, T) if elapsed is None else elapsed
    times = elapsed.cumsum(dim=1)
    bias = q.new_full((B, G, T, N, T, N), -torch.inf)
    for t in range(T):
        for s in range(max(0, t - window_frames + 1), t + 1):
            age = (times[:, t] - times[:, s])[:, None]
            rate = q.new_zeros(G) if decay is None else decay
            bias[:, :, t, :, s, :] = (-rate * age)[..., None, None]
    return naive_softmax_attention(
        *(x.flatten(1, 2) for x in (q, k, v)),
        bias=bias.flatten(4, 5).flatten(2, 3)).unflatten(1, (T, N))
