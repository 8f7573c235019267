# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streaming attention with explicit state, a sample at a time."""
import math

import pytest
import torch

from mmvidattn.ops.temporal_smoothing import (
    exponential_smoothing,
    naive_exponential_smoothing,
    smoothing_state,
    temporal_smoothing_attention,
    window_smoothing,
    window_state,
)

N, G, D, E = 3, 2, 6, 5


def _stream(lead=(2, ), steps=23, dtype=torch.float64, drift=0.):
    gen = torch.Generator().manual_seed(0)
    q = torch.randn(*lead, N, G, D, generator=gen, dtype=torch.float64)
    k = torch.randn(*lead, steps, G, D, generator=gen, dtype=torch.float64)
    v = torch.randn(*lead, steps, G, E, generator=gen, dtype=torch.float64)
    # Along the queries, so that the scores of all of them move.
    q[..., 0] = math.sqrt(D)
    k[..., 0] += drift * torch.linspace(0, 1, steps)[:, None]
    return q.to(dtype), k.to(dtype), v.to(dtype)


def _run(op, q, k, v, state, **kwargs):
    out = []
    for t in range(k.shape[-3]):
        y, state = op(q, k[..., t, :, :], v[..., t, :, :], state, **kwargs)
        out.append(y)
    return torch.stack(out), state


def _difference(a, b):
    return (a.double() - b.double()).norm() / b.double().norm()


@pytest.mark.parametrize('decay', [1., 0.9, 0.5])
@pytest.mark.parametrize('lead', [(), (2, ), (2, 3)])
@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1e-2)])
def test_smoothing_matches_naive(decay, lead, dtype, tolerance):
    q, k, v = _stream(lead, dtype=dtype)
    got, state = _run(exponential_smoothing, q, k, v, smoothing_state(q, E),
                      decay=decay)
    want = naive_exponential_smoothing(
        q.double(), k.double(), v.double(), decay=decay)
    assert got.dtype == dtype and state.total.dtype in (
        torch.float32, torch.float64)
    assert got.shape == want.shape
    assert _difference(got, want) < tolerance


@pytest.mark.parametrize('length', [1, 7, 40])
@pytest.mark.parametrize('decay', [1., 0.9])
@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_window_matches_naive(decay, length, dtype, tolerance):
    q, k, v = _stream(dtype=dtype)
    got, _ = _run(window_smoothing, q, k, v, window_state(q, E, length),
                  decay=decay)
    want = naive_exponential_smoothing(
        q.double(), k.double(), v.double(), decay=decay, length=length)
    assert _difference(got, want) < tolerance


@pytest.mark.parametrize('decay', [1., 0.9])
def test_window_is_the_windowed_attention_at_any_age(decay):
    q, k, v = _stream()
    got, _ = _run(window_smoothing, q, k, v, window_state(q, E, 7),
                  decay=decay)
    for t in range(k.shape[-3]):
        window = slice(max(0, t - 6), t + 1)
        want = temporal_smoothing_attention(
            q, k[:, window], v[:, window], decay=decay)
        assert _difference(got[t], want) < 1e-6


def test_streams_of_different_ages_share_a_step():
    q, k, v = _stream()
    state = window_state(q, E, 7)
    # The second begins five steps late.
    for t in range(23):
        y, new = window_smoothing(q, k[:, t], v[:, t], state, decay=0.9)
        late = torch.tensor([True, t >= 5])
        state = type(state)(*(
            torch.where(late.view(2, *[1] * (a.dim() - 1)), a, b)
            for a, b in zip(new, state)))
    want, _ = _run(window_smoothing, q[1:], k[1:, 5:], v[1:, 5:],
                   window_state(q[1:], E, 7), decay=0.9)
    assert _difference(y[1:], want[-1]) < 1e-12


@pytest.mark.parametrize('drift', [120., -120., 1e4])
@pytest.mark.parametrize('decay', [1., 0.97])
def test_scores_may_drift(drift, decay):
    """The released recursion overflows at 88, and freezes at -104."""
    q, k, v = _stream(steps=60, drift=drift)
    want = naive_exponential_smoothing(q, k, v, decay=decay)
    args = q.float(), k.float(), v.float()
    got, state = _run(exponential_smoothing, *args, smoothing_state(q, E),
                      decay=decay)
    assert all(x.isfinite().all() for x in state)
    assert _difference(got, want) < 1e-3
    got, state = _run(window_smoothing, *args, window_state(q, E, 60),
                      decay=decay)
    assert _difference(got, want) < 1e-3


@pytest.mark.parametrize('op, begin', [
    (exponential_smoothing, lambda q: smoothing_state(q, E)),
    (window_smoothing, lambda q: window_state(q, E, 7))],
    ids=['smoothing', 'window'])
def test_state_is_explicit_and_left_alone(op, begin):
    q, k, v = _stream()
    whole, _ = _run(op, q, k, v, begin(q), decay=0.9)
    _, middle = _run(op, q, k[:, :9], v[:, :9], begin(q), decay=0.9)
    kept = [x.clone() for x in middle]
    for _ in range(2):
        rest, _ = _run(op, q, k[:, 9:], v[:, 9:], middle, decay=0.9)
        assert torch.equal(rest, whole[9:])
    assert all(map(torch.equal, middle, kept))


def test_smoothing_has_no_state_that_grows():
    q, k, v = _stream(steps=5)
    shapes = [x.shape for x in smoothing_state(q, E)]
    _, state = _run(exponential_smoothing, q, k, v, smoothing_state(q, E))
    assert [x.shape for x in state] == shapes


@pytest.mark.parametrize('op, begin', [
    (exponential_smoothing, lambda q: smoothing_state(q, E)),
    (window_smoothing, lambda q: window_state(q, E, 7))],
    ids=['smoothing', 'window'])
def test_rejects_shapes_and_decay(op, begin):
    q, k, v = _stream()
    with pytest.raises(ValueError, match=f'{op.__name__} takes q'):
        op(q, k, v, begin(q))
    with pytest.raises(ValueError, match=r'decay must be in \(0, 1\]'):
        op(q, k[:, 0], v[:, 0], begin(q), decay=0.)


def test_rejects_an_empty_window():
    with pytest.raises(ValueError, match='length must be at least 1, got 0'):
        window_state(_stream()[0], E, 0)
