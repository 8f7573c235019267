# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest
import torch
from helpers import relative, with_gradients

from mmvidattn.ops import frame_causal_linear_attention
from mmvidattn.ops.frame_causal_linear_attention import (
    initial_frame_sums,
    naive_frame_causal_linear_attention,
)

# No decay, a slow and a fast decay.
RATES = torch.tensor([0., 0.01, 0.7], dtype=torch.float64)
TIMED = pytest.mark.parametrize('timed', [False, True])
DECAYS = pytest.mark.parametrize('decay', [None, RATES],
                                 ids=['plain', 'decay'])


def _inputs(T=37, N=5, B=2, G=3, D=4, E=6):
    gen = torch.Generator().manual_seed(0)
    q, k = (torch.rand(B, T, N, G, D, generator=gen, dtype=torch.float64)
            for _ in range(2))
    v = torch.randn(B, T, N, G, E, generator=gen, dtype=torch.float64)
    return q, k, v, 3 * torch.rand(B, T, generator=gen, dtype=torch.float64)


def _stream(q, k, v, decay, elapsed, sizes):
    """Process the frames in parts of these sizes."""
    state, parts = None, []
    for part in zip(*(x.split(sizes, dim=1) for x in (q, k, v, elapsed))):
        y, state = frame_causal_linear_attention(
            *part[:3], decay, state, part[3])
        assert state[0].dtype == torch.promote_types(v.dtype, torch.float32)
        parts.append(y)
    return torch.cat(parts, dim=1), state


@DECAYS
@TIMED
@pytest.mark.parametrize('chunk', [1, 4, 16, 64])
def test_chunks_match_naive_in_outputs_and_gradients(decay, timed, chunk):
    q, k, v, elapsed = _inputs()
    elapsed = elapsed if timed else None

    def fast(q, k, v, decay=None):
        return frame_causal_linear_attention(
            q, k, v, decay, elapsed=elapsed, chunk_frames=chunk)[0]

    def naive(q, k, v, decay=None):
        return naive_frame_causal_linear_attention(q, k, v, decay, elapsed)

    tensors = (q, k, v) if decay is None else (q, k, v, decay)
    for got, want in zip(with_gradients(fast, tensors),
                         with_gradients(naive, tensors)):
        assert relative(got, want) < 1e-12


@TIMED
def test_gradients_pass_through_the_state(timed):
    """A stream in parts gives the same gradients as the masked clip."""
    q, k, v, elapsed = _inputs(T=24)
    times = elapsed if timed else torch.ones_like(elapsed)

    def parts(q, k, v, decay):
        return _stream(q, k, v, decay, times, [1, 1, 20, 2])[0]

    def naive(q, k, v, decay):
        return naive_frame_causal_linear_attention(
            q, k, v, decay, elapsed if timed else None)

    for got, want in zip(with_gradients(parts, (q, k, v, RATES)),
                         with_gradients(naive, (q, k, v, RATES))):
        assert relative(got, want) < 1e-12


@pytest.mark.parametrize('rate', [0., 1e-3])
def test_sums_do_not_stall_after_many_frames(rate):
    """Check small terms: a plain float32 sum ignores 10^-8 of its value."""
    T = 1000
    gen = torch.Generator().manual_seed(0)
    k = torch.rand(1, T, 1, 1, 4, generator=gen)
    v = torch.randn(1, T, 1, 1, 4, generator=gen) + 1
    sums, carry = initial_frame_sums(v, 4)
    # The sums after 10^8 frames that add about 1/2 each.
    state = sums + 5e7, carry
    exact = state[0].double(), carry
    decay = torch.tensor([rate])
    for t in range(T):
        part = k[:, t:t + 1], k[:, t:t + 1], v[:, t:t + 1]
        _, state = frame_causal_linear_attention(*part, decay, state)
        _, exact = frame_causal_linear_attention(
            *(x.double() for x in part), decay.double(), exact)
    change = exact[0] - 5e7
    assert relative(state[0].double() + state[1].double() - 5e7,
                    change) < 1e-2
    # float32 also rounds the decay.
    assert relative(state[0], exact[0]) < 1e-6 * (1 + rate * T)


def test_slow_decay_is_exact_where_expm1_is_not(monkeypatch):
    """Compute expm1 like compiled programs and ONNX Runtime."""
    T, rate = 300, 1e-3
    v = torch.ones(1, T, 1, 1, 1)
    want = sum(np.exp(-rate * age) for age in range(T))
    monkeypatch.setattr(torch, 'expm1', lambda x: x.exp() - 1)
    _, state = _stream(v, v, v, torch.tensor([rate]), torch.ones(1, T),
                       [1] * T)
    assert state[0].flatten().tolist() == pytest.approx([want] * 2, rel=1e-6)


@pytest.mark.parametrize('gap', [1e5, 1e7])
def test_clip_equals_stream_around_a_long_gap(gap):
    q, k, v, elapsed = _inputs(T=12)
    elapsed[:, 5] = gap
    decay = torch.tensor([0., 1e-4, 0.7])
    inputs = [x.float() for x in (q, k, v)] + [decay, elapsed.float()]
    clip, _ = frame_causal_linear_attention(*inputs[:4], None, inputs[4])
    stream, _ = _stream(*inputs, [1] * 12)
    assert relative(clip, stream) < 1e-6


@pytest.mark.parametrize('autocast', [False, True])
def test_bfloat16_inputs_have_float32_state(autocast):
    q, k, v, elapsed = (x.bfloat16() for x in _inputs(T=200))
    with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
        y, state = frame_causal_linear_attention(q, k, v, RATES.bfloat16())
    assert y.dtype == torch.bfloat16
    assert state[0].dtype == torch.float32
    want = naive_frame_causal_linear_attention(
        *(x.double() for x in (q, k, v, RATES.bfloat16())))
    assert relative(y, want) < 3e-3


def test_backward_keeps_only_the_states_between_chunks():
    q, k, v, _ = _inputs(T=128, N=1, B=1, G=1, D=32, E=32)
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    inputs, kept = {x.data_ptr() for x in (q, k, v)}, {}

    def pack(x):
        if x.untyped_storage().data_ptr() not in inputs:
            kept[x.data_ptr()] = x.numel()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        frame_causal_linear_attention(q, k, v)
    # Sums and carry of 8 chunks; not the sums of 128 frames.
    assert sum(kept.values()) <= 2 * 8 * 32 * 33
