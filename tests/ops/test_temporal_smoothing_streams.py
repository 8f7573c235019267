# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streaming attention with explicit state, one sample at a time."""
import math

import pytest
import torch
from helpers import relative

from mmvidattn.ops.precision import at_least_float32
from mmvidattn.ops.temporal_smoothing import (
    exponential_smoothing,
    naive_exponential_smoothing,
    read_rows,
    sample_scores,
    smoothing_state,
    temporal_smoothing_attention,
    window_smoothing,
    write_row,
)

N, G, D, E = 3, 2, 6, 5


def _stream(lead=(2, ), steps=23, dtype=torch.float64, drift=0.):
    gen = torch.Generator().manual_seed(0)
    q = torch.randn(N, G, D, generator=gen, dtype=torch.float64)
    k = torch.randn(*lead, steps, G, D, generator=gen, dtype=torch.float64)
    v = torch.randn(*lead, steps, G, E, generator=gen, dtype=torch.float64)
    # The drift is along all queries, so that all scores change.
    q[..., 0] = math.sqrt(D)
    k[..., 0] += drift * torch.linspace(0, 1, steps)[:, None]
    return q.to(dtype), k.to(dtype), v.to(dtype)


def _samples(q, k, v):
    """Yield scores and values of each step."""
    for t in range(k.shape[-3]):
        yield sample_scores(q, k[..., t, :, :]), v[..., t, :, :]


def _smooth(q, k, v, state=None, **kwargs):
    out = []
    for scores, value in _samples(q, k, v):
        if state is None:
            state = smoothing_state(scores, E)
        y, state = exponential_smoothing(scores, value, state, **kwargs)
        out.append(y)
    return torch.stack(out), state


def _rings(q, k, v, length):
    """Return empty rings for the scores and values of the streams."""
    lead = len(k.shape) - 3
    return [x.new_zeros(*x.shape[:lead], length, *x.shape[lead:])
            for x in at_least_float32(*next(_samples(q, k, v)))]


def _window(q, k, v, length, places=(0., 0.), **kwargs):
    """Run all steps of streams that start together."""
    out, rings = [], _rings(q, k, v, length)
    for t, sample in enumerate(_samples(q, k, v)):
        step = torch.full(k.shape[:-3], t)
        for ring, row in zip(rings, sample):
            write_row(ring, step, row)
        steps = step[..., None] - torch.arange(length - 1, -1, -1)
        window = [read_rows(ring, steps) + x for ring, x in zip(rings, places)]
        out.append(window_smoothing(*window, mask=steps >= 0, **kwargs))
    return torch.stack(out)


def _naive(q, k, v, **kwargs):
    q, k, v = (x.double() for x in (q, k, v))
    return naive_exponential_smoothing(
        q.expand(*k.shape[:-3], *q.shape), k, v, **kwargs)


def test_window_with_positions_equals_cross_attention():
    """Add positions as in LSTR: keys and values are affine in both."""
    q, k, v = _stream()
    gen = torch.Generator().manual_seed(1)
    places = torch.randn(7, G, D, generator=gen, dtype=torch.float64)
    added = torch.randn(7, G, E, generator=gen, dtype=torch.float64)
    got = _window(q, k, v, 7, (sample_scores(q, places), added))
    for t in range(6, k.shape[-3]):
        window = slice(t - 6, t + 1)
        want = temporal_smoothing_attention(
            q.expand(2, N, G, D), k[:, window] + places, v[:, window] + added)
        assert relative(got[t], want) < 1e-12


def test_streams_of_different_ages_share_a_batch():
    q, k, v = _stream()
    rings = _rings(q, k, v, 7)
    # The second stream starts five steps late.
    for t, sample in enumerate(_samples(q, k, v)):
        step = torch.tensor([t, max(0, t - 5)])
        for ring, row in zip(rings, sample):
            write_row(ring, step, row)
    steps = step[:, None] - torch.arange(6, -1, -1)
    y = window_smoothing(*(read_rows(x, steps) for x in rings), decay=0.9)
    want = _window(q, k[1:, 5:], v[1:, 5:], 7, decay=0.9)
    assert relative(y[1], want[-1, 0]) < 1e-12


@pytest.mark.parametrize('decay', [1., 0.9])
def test_times_repeats_or_skips_a_sample(decay):
    q, k, v = _stream((3, ))
    _, before = _smooth(q, k[:, :9], v[:, :9], decay=decay)
    sample = next(_samples(q, k[:, 9:], v[:, 9:]))
    # A skipped sample leaves no trace, even with a large score.
    sample[0][2] += 1e4
    times = torch.tensor([3, 1, 0])
    y, after = exponential_smoothing(
        *sample, before, decay=decay, times=times)
    for stream, number in enumerate(times.tolist()):
        want = before
        for _ in range(number):
            out, want = exponential_smoothing(*sample, want, decay=decay)
            expected = out[stream]
        if number:
            assert relative(y[stream], expected) < 1e-12
        for a, b in zip(after, want):
            torch.testing.assert_close(
                a[stream], b[stream], rtol=1e-12 if number else 0, atol=0)


@pytest.mark.parametrize('drift', [120., -120., 1e4])
@pytest.mark.parametrize('decay', [1., 0.97])
def test_scores_may_drift(drift, decay):
    """The released recursion overflows at 88 and freezes at -104."""
    q, k, v = _stream(steps=60, drift=drift)
    want = _naive(q, k, v, decay=decay)
    args = q.float(), k.float(), v.float()
    got, state = _smooth(*args, decay=decay)
    assert all(x.isfinite().all() for x in state)
    assert relative(got, want) < 1e-3
    assert relative(_window(*args, 60, decay=decay), want) < 1e-3


def test_a_spike_fades_in_time():
    """In float32, its end would be wrong by a hundred of thousands of samples.
    """
    decay, spike = 0.97, 300.
    scores = torch.zeros(1, 1)
    state = smoothing_state(scores, 1)
    _, state = exponential_smoothing(
        scores + spike, torch.ones(1, 1), state, decay=decay)
    # The total weight of the other samples approaches 1 / (1 - decay).
    half = (spike + math.log(1 - decay)) / -math.log(decay)
    for t in range(1, int(half) + 200):
        y, state = exponential_smoothing(
            scores, torch.zeros(1, 1), state, decay=decay)
        want = 1 / (1 + math.exp((half - t) * math.log(decay)))
        assert abs(float(y) - want) < 1e-4, t


@pytest.mark.parametrize('decay', [1., 0.999])
def test_a_constant_stream_does_not_drift(decay):
    """Millions of samples at once, then thousands one by one."""
    gen = torch.Generator().manual_seed(0)
    scores = torch.randn(2, N, G, generator=gen)
    v = torch.randn(2, G, E, generator=gen)
    state = smoothing_state(scores, E)
    for times in [2**24] + 2000 * [1]:
        y, state = exponential_smoothing(
            scores, v, state, decay=decay, times=torch.tensor([times] * 2))
    mean = state.total / state.weight[..., None]
    assert relative(mean, v[:, None].expand_as(mean)) < 1e-12
    if decay == 1:
        assert torch.equal(state.weight, torch.full_like(scores, 2**24 + 2000))
    assert y.dtype == torch.float32
