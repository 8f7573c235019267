# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Gated delta rule over the frames of a stream."""
import torch
from torch import Tensor

from .precision import at_least_float32, without_autocast


def frame_delta_rule(q: Tensor,
                     k: Tensor,
                     v: Tensor,
                     beta: Tensor,
                     log_gate: Tensor,
                     state: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Read a memory that each frame decays and corrects.

    With the keys K, the values V and the rates :math:`\beta` of the tokens of
    frame t, for each head,

    .. math:: y = q S_t / \sqrt D, \quad S_t = e^{g_t} S_{t-1} +
        K^T \frac{diag(\beta)}{m_t} (V - K e^{g_t} S_{t-1}), \quad
        m_t = \max(1, \|K^T diag(\beta) K\|_F).

    For one token per frame and keys of norm 1, it is the gated delta rule of
    `Gated Delta Networks <https://arxiv.org/abs/2412.06464>`_, Eq. 10. The
    tokens of a frame have no order. They therefore correct the memory at once,
    by a gradient step on the squared error of the values, and see the result.
    The paper corrects token by token. The bound m keeps the eigenvalues of the
    step between 0 and 1, so the memory never diverges.

    The state is S after the last frame. A stream that is split at any frame
    gives the same results as one pass, because clips run frame by frame, too.
    Sums are at least float32, also under autocast.

    Args:
        q: Queries, [B, T, N, G, D], for T >= 1 frames.
        k: Keys, [B, T, M, G, D].
        v: Values, [B, T, M, G, E].
        beta: Rate of correction of each token, in [0, 1], [B, T, M, G].
        log_gate: Logarithm of the decay of the memory before each frame, at
            most 0, [B, T, G].
        state: Memory after the previous frames, [B, G, D, E]. Defaults to
            zeros, the start of a stream.

    Returns:
        The result [B, T, N, G, E] in the dtype of ``v``, and the state after
        the last frame, [B, G, D, E].

    Raises:
        ValueError: If the shapes do not fit.
    """
    if (q.dim() != 5 or q.shape[:2] != k.shape[:2]
            or q.shape[3:] != k.shape[3:] or k.shape[:-1] != v.shape[:-1]
            or beta.shape != k.shape[:-1]
            or log_gate.shape != (*k.shape[:2], k.shape[3])):
        raise ValueError(
            'frame_delta_rule takes q [B, T, N, G, D], k [B, T, M, G, D], '
            'v [B, T, M, G, E], beta [B, T, M, G] and log_gate [B, T, G], got '
            + ', '.join(str(tuple(x.shape))
                        for x in (q, k, v, beta, log_gate)))
    dtype = v.dtype
    if state is None:
        state = initial_memory(v, k.shape[-1])
    with without_autocast(v.device.type):
        q, k, v, beta, state = at_least_float32(q, k, v, beta, state)
        q, k, v = (x.transpose(2, 3) for x in (q, k, v))
        # [B, T, G, D, M]
        rated = (k * beta.transpose(2, 3).unsqueeze(-1)).mT
        overlap, added = rated @ k, rated @ v
        bound = overlap.square().sum(dim=(-2, -1), keepdim=True)
        # The root of a sum below 1 does not matter, and has no gradient at 0.
        bound = bound.clamp(min=1).sqrt()
        overlap, added = overlap / bound, added / bound
        gates = log_gate.to(q.dtype).exp()[..., None, None]
        states = []
        # The gradient of x[:, t] is as large as x; unbind has one for all t.
        for gate, add, over in zip(
                gates.unbind(1), added.unbind(1), overlap.unbind(1)):
            state = state * gate
            state = state + add - over @ state
            states.append(state)
        y = q @ torch.stack(states, dim=1) * q.shape[-1]**-0.5
    return y.transpose(2, 3).to(dtype), state


def initial_memory(v: Tensor, head_dims: int) -> Tensor:
    """Return the first state for values [B, T, N, G, E] and head width D."""
    wide, = at_least_float32(v[:0])
    B, _, _, G, E = v.shape
    return wide.new_zeros(B, G, head_dims, E)


def naive_frame_delta_rule(q: Tensor, k: Tensor, v: Tensor, beta: Tensor,
                           log_gate: Tensor) -> Tensor:
    """Reference of :func:`frame_delta_rule` for entire streams.

    It corrects the memory of each head by the errors of the tokens.
    """
    B, T, _, G, D = q.shape
    y = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for b in range(B):
        for g in range(G):
            memory = q.new_zeros(D, v.shape[-1])
            for t in range(T):
                keys, values = k[b, t, :, g], v[b, t, :, g]
                rates = beta[b, t, :, g]
                memory = memory * log_gate[b, t, g].exp()
                square = keys.T @ rates.diag() @ keys
                bound = max(1., torch.linalg.matrix_norm(square))
                for key, error, rate in zip(
                        keys, values - keys @ memory, rates):
                    memory = memory + rate / bound * torch.outer(key, error)
                y[b, t, :, g] = q[b, t, :, g] @ memory / D**.5
    return y
