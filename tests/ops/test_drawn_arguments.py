# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Property tests: each op equals its definition for random arguments.

hypothesis draws shapes, dtypes, strides, masks and options, and shrinks a
failing case. The definition computes in float64.
"""
from functools import partial

import pytest
import torch

from mmvidattn.ops import (
    cosformer_attention,
    feature_map,
    fixation_ratio,
    frame_causal_linear_attention,
    frame_delta_rule,
    landmark_grid,
    landmark_pool,
    lara_attention,
    linear_attention,
    linformer_attention,
    mala_attention,
    neighbor_shift,
    orthoformer_attention,
    orthogonal_landmarks,
    performer_attention,
    periodic_shift,
    plain_shift,
    polaformer_attention,
    rala_attention,
    random_projection,
    shift_plan,
    softmax_attention,
    temporal_smoothing_attention,
    token_shift,
)
from mmvidattn.ops.cosformer import naive_cosformer_attention
from mmvidattn.ops.feature_fixation import naive_fixation_ratio
from mmvidattn.ops.frame_causal_linear_attention import (
    naive_frame_causal_linear_attention,
)
from mmvidattn.ops.frame_delta_rule import naive_frame_delta_rule
from mmvidattn.ops.lara import naive_landmark_pool, naive_lara_attention
from mmvidattn.ops.linear_attention import naive_linear_attention
from mmvidattn.ops.linformer import naive_linformer_attention
from mmvidattn.ops.mala import naive_mala_attention
from mmvidattn.ops.neighbor_shift import (
    causal_neighbor_shift,
    causal_plan,
    naive_neighbor_shift,
    shift_memory,
)
from mmvidattn.ops.orthoformer import (
    naive_orthoformer_attention,
    naive_orthogonal_landmarks,
)
from mmvidattn.ops.performer import naive_performer_attention
from mmvidattn.ops.periodic_shift import naive_periodic_shift
from mmvidattn.ops.polaformer import naive_polaformer_attention
from mmvidattn.ops.rala import naive_rala_attention
from mmvidattn.ops.softmax_attention import naive_softmax_attention
from mmvidattn.ops.temporal_smoothing.rings import (
    fill_rows,
    push_row,
    read_rows,
    write_row,
)
from mmvidattn.ops.temporal_smoothing.streams import (
    exponential_smoothing,
    naive_exponential_smoothing,
    sample_scores,
    smoothing_state,
    window_smoothing,
)
from mmvidattn.ops.temporal_smoothing.temporal_smoothing import (
    naive_temporal_smoothing_attention,
)
from mmvidattn.ops.window import (
    naive_window_merge,
    naive_window_partition,
    window_merge,
    window_partition,
)

hypothesis = pytest.importorskip('hypothesis')
st = hypothesis.strategies

TOLERANCES = {torch.float64: 1e-10, torch.float32: 2e-5,
              torch.bfloat16: 2e-2, torch.float16: 3e-3}
FULL = [torch.float64, torch.float32]
LAYOUTS = ['contiguous', 'transposed', 'every second', 'offset', 'expanded']


class Draw:
    """Random arguments for a test, drawn from hypothesis' data."""

    def __init__(self, data, dtypes=tuple(TOLERANCES)):
        self._data = data
        self.dtype = self.of(dtypes)
        self.generator = torch.Generator().manual_seed(
            self.size(0, 2**16))

    def of(self, values):
        return self._data.draw(st.sampled_from(list(values)))

    def size(self, low=1, high=9):
        return self._data.draw(st.integers(low, high))

    def sizes(self, number, low=1, high=5):
        return tuple(self.size(low, high) for _ in range(number))

    def lead(self):
        return self.sizes(self.size(0, 2), high=3)

    def tensor(self, *shape, scale=1., dtype=None):
        dtype = dtype or self.dtype
        layout = self.of(LAYOUTS)

        def random(*shape):
            return (torch.randn(
                *shape, generator=self.generator) * scale).to(dtype)

        if layout == 'transposed' and len(shape) > 1:
            return random(*shape[::-1]).permute(*range(len(shape))[::-1])
        if layout == 'every second':
            return random(*shape[:-1], 2 * shape[-1])[..., ::2]
        if layout == 'offset':
            return random(shape[0] + 1, *shape[1:])[1:]
        if layout == 'expanded':
            return random(1, *shape[1:]).expand(shape)
        return random(*shape)

    def mask(self, *shape):
        mask = torch.rand(*shape, generator=self.generator) > .4
        mask[..., self.size(0, shape[-1] - 1)] = True
        return mask

    def qkv(self, lead=None, scale=1.):
        lead = self.lead() if lead is None else lead
        N, M, G, D, E = *self.sizes(2, high=12), self.size(1, 3), \
            *self.sizes(2, high=9)
        return (self.tensor(*lead, N, G, D, scale=scale),
                self.tensor(*lead, M, G, D, scale=scale),
                self.tensor(*lead, M, G, E))

    def same(self, got, want, terms=None, tolerance=None):
        """Check that ``got`` equals ``want`` up to rounding.

        The error is relative to ``want`` or, for sums that may cancel, to
        their ``terms``.
        """
        assert got.shape == want.shape
        assert torch.isfinite(got).all()
        size = max(_rms(want), 1e-6, 0. if terms is None else _rms(terms))
        assert _rms(got.double() - want) < size * (
            tolerance or TOLERANCES[self.dtype])

    def same_attention(self, op, naive, q, k, v):
        """Compare an attention and its gradients with the definition."""
        leaves, wide = ([x.detach().clone().to(dtype).requires_grad_()
                         for x in (q, k, v)]
                        for dtype in (self.dtype, torch.float64))
        got, want = op(*leaves), naive(*wide)
        assert got.dtype == self.dtype
        self.same(got, want, v)
        weight = torch.randn(want.shape, generator=self.generator)
        got, want = (torch.autograd.grad((y.double() * weight).sum(), x)
                     for y, x in ((got, leaves), (want, wide)))
        largest = max(1e-3, *map(_rms, want))
        for a, b in zip(got, want):
            assert _rms(a.double() - b) < largest * 5 * TOLERANCES[self.dtype]


def _rms(x):
    return x.double().square().mean().sqrt().item()


def _double(*tensors):
    return tuple(x.double() for x in tensors)


def check_softmax(data):
    d = Draw(data)
    q, k, v = d.qkv()
    options = {}
    if d.of([0, 1]):
        options['key_mask'] = d.mask(*k.shape[:-2])
    if d.of([0, 1]):
        options['scale'] = .7
    d.same_attention(partial(softmax_attention, **options),
                     partial(naive_softmax_attention, **options), q, k, v)


def check_linear(data):
    d = Draw(data)
    clamp, order = d.of([False, True]), d.of(['auto', 'left', 'right'])
    d.same_attention(
        lambda q, k, v: linear_attention(
            q.relu(), k.relu(), v, order=order, clamp_eps=clamp),
        lambda q, k, v: naive_linear_attention(
            q.relu(), k.relu(), v, clamp_eps=clamp), *d.qkv())


def check_cosformer(data):
    d = Draw(data)
    order = d.of(['auto', 'left', 'right'])
    d.same_attention(
        lambda q, k, v: cosformer_attention(
            q.relu(), k.relu(), v, order=order),
        lambda q, k, v: naive_cosformer_attention(q.relu(), k.relu(), v),
        *d.qkv())


def check_mala_and_rala(data):
    d = Draw(data)
    op, naive = d.of([(mala_attention, naive_mala_attention),
                      (rala_attention, naive_rala_attention)])
    order = d.of(['auto', 'left', 'right'])
    d.same_attention(
        lambda q, k, v: op(feature_map(q, 'elu+1'), feature_map(k, 'elu+1'),
                           v, order=order),
        lambda q, k, v: naive(feature_map(q, 'elu+1'),
                              feature_map(k, 'elu+1'), v), *d.qkv())


def check_polaformer(data):
    d = Draw(data)
    q, k, v = d.qkv()
    v = torch.cat([v, -v.flip(-1)], dim=-1)
    power = 1 + d.tensor(*k.shape[-2:], dtype=torch.float64).abs()
    order = d.of(['auto', 'left', 'right'])
    d.same_attention(
        lambda *x: polaformer_attention(*x, power.to(torch.promote_types(
            d.dtype, torch.float32)), order=order),
        lambda *x: naive_polaformer_attention(*x, power), q, k, v)


def check_frame_delta_rule(data):
    d = Draw(data)
    B, T, N, M, G, D, E = (d.size(1, n) for n in (2, 9, 4, 4, 3, 5, 5))
    q, k, v = (d.tensor(B, T, *rest) for rest in (
        (N, G, D), (M, G, D), (M, G, E)))
    beta = d.tensor(B, T, M, G).sigmoid()
    log_gate = -d.tensor(B, T, G, dtype=torch.float32).abs()
    inputs, parts, state = (q, k, v, beta, log_gate), [], None
    frames = d.size(1, 9)
    for part in zip(*(x.split(frames, dim=1) for x in inputs)):
        y, state = frame_delta_rule(*part, state)
        parts.append(y)
    assert y.dtype == d.dtype
    d.same(torch.cat(parts, 1), naive_frame_delta_rule(*_double(*inputs)), v)


def check_performer(data):
    d = Draw(data)
    q, k, v = d.qkv(scale=.5)
    kind, order = d.of(['favor', 'relu']), d.of(['auto', 'left', 'right'])
    W = random_projection(d.size(1, 20), q.shape[-1], d.generator)
    wide = W.to(torch.promote_types(d.dtype, torch.float32))
    d.same_attention(
        lambda *x: performer_attention(*x, wide, kind=kind, order=order),
        lambda *x: naive_performer_attention(*x, W.double(), kind=kind),
        q, k, v)


def check_linformer(data):
    d = Draw(data)
    q, k, v = d.qkv()
    wide = torch.promote_types(d.dtype, torch.float32)
    P = d.size()
    E, F_ = (d.tensor(k.shape[-3], P, dtype=wide) for _ in range(2))
    d.same_attention(
        lambda *x: linformer_attention(*x, E, F_),
        lambda *x: naive_linformer_attention(*x, *_double(E, F_)), q, k, v)


def check_orthoformer(data):
    d = Draw(data, FULL)
    q, k, v = d.qkv()
    # For equal queries, or width 1, the choice would depend on rounding.
    q, k = (torch.randn(*x.shape[:-1], 5, generator=d.generator).to(d.dtype)
            for x in (q, k))
    number = d.size(1, 6)
    first = torch.randint(q.shape[-3], (*q.shape[:-3], q.shape[-2]),
                          generator=d.generator)
    chosen = orthogonal_landmarks(q, number, first)
    for head, index, result in zip(
            q.double().transpose(-3, -2).reshape(-1, q.shape[-3], 5),
            first.flatten(),
            chosen.transpose(-2, -1).reshape(-1, chosen.shape[-2])):
        assert torch.equal(result, naive_orthogonal_landmarks(
            head, number, index))
    landmarks = q.gather(-3, chosen[..., None].expand(*chosen.shape, 5))
    d.same(orthoformer_attention(q, k, v, landmarks),
           naive_orthoformer_attention(*_double(q, k, v, landmarks)), v)


def check_lara(data):
    d = Draw(data, FULL)
    q, k, v = d.qkv(scale=.5)
    C = d.size(1, 5)
    shape = *q.shape[:-3], C, *q.shape[-2:]
    landmarks = d.tensor(*shape), d.tensor(*shape)
    omega = d.tensor(*shape) if d.of([0, 1]) else None
    got = lara_attention(q, k, v, *landmarks, omega)
    d.same(got, naive_lara_attention(
        *_double(q, k, v, *landmarks),
        None if omega is None else omega.double()), v, tolerance=1e-4)


def check_landmark_pool(data):
    d = Draw(data)
    shape = d.sizes(d.size(1, 3), high=6)
    grid = landmark_grid(
        shape, d.size(1, 3)**2 if len(shape) == 2 else d.size(1, 9))
    x = d.tensor(*d.lead(), torch.Size(shape).numel(), 2, 3)
    got = landmark_pool(x, shape, grid)
    for pooled, tokens in zip(got.reshape(-1, *got.shape[-3:]),
                              x.double().reshape(-1, *x.shape[-3:])):
        d.same(pooled, naive_landmark_pool(tokens, shape, grid), tokens)


def check_feature_map(data):
    d = Draw(data)
    x = d.tensor(*d.lead(), 4)
    expected = {
        'relu': lambda x: x.clamp(min=0),
        'elu+1': lambda x: torch.where(x > 0, x + 1, x.exp()),
        'sigmoid': lambda x: 1 / (1 + (-x).exp()), 'identity': lambda x: x}
    kind = d.of(expected)
    d.same(feature_map(x, kind, .25), expected[kind](x.double()) + .25)


def check_fixation(data):
    d = Draw(data)
    lead, D = (*d.lead(), d.size()), d.size()
    aggregate = d.of(['concat', 'add', 'mul'])
    inputs = tuple(d.tensor(*lead, D) for _ in range(d.size(1, 3)))
    weight = d.tensor(
        D, D * (len(inputs) if aggregate == 'concat' else 1), scale=.3)
    bias = d.tensor(D)
    d.same(fixation_ratio(inputs, weight, bias, aggregate),
           naive_fixation_ratio(_double(*inputs), *_double(weight, bias),
                                aggregate))


def check_shift(data):
    d = Draw(data)
    mode, options = d.of([
        ('tsm', dict(divisor=d.size(2, 5))),
        ('window', dict(alpha=d.of([0., .5, .75]))),
        ('cross', dict(divisor=d.size(4, 6))),
        ('cross', dict(alpha=d.of([.25, .5]))),
        ('square', dict(alpha=d.of([0., .5]))), ('eight', {})])
    plan = shift_plan(mode, d.size(8, 110), size=d.size(1, 2), boundary=d.of(
        [None, 'zero', 'replicate', 'self']), **options)
    channels = max([8, *(fold.stop for fold in plan)])
    x = d.tensor(d.size(1, 2), *d.sizes(3, high=4), channels)
    assert torch.equal(neighbor_shift(x, plan), naive_neighbor_shift(x, plan))


def check_causal_shift(data):
    d = Draw(data)
    mode, options = d.of([('tsm', dict(divisor=d.size(2, 5))),
                          ('window', dict(alpha=d.of([0., .5])))])
    channels = d.size(8, 40)
    plan = causal_plan(shift_plan(mode, channels, size=d.size(1, 3),
                                  **options))
    x = d.tensor(d.size(1, 2), *d.sizes(3, high=5), channels)
    frames, start, stop = shift_memory(plan)
    hypothesis.assume(frames)
    state = x.new_zeros(len(x), frames, *x.shape[2:4], stop - start)
    parts = []
    for part in x.split(d.size(1, 5), dim=1):
        y, state = causal_neighbor_shift(part, plan, state)
        parts.append(y)
    assert torch.equal(torch.cat(parts, 1), naive_neighbor_shift(x, plan))


def check_frame_causal_linear(data):
    d = Draw(data)
    B, T, N, G, D, E = (d.size(1, n) for n in (2, 9, 4, 3, 5, 5))
    q, k = (d.tensor(B, T, N, G, D).relu() for _ in range(2))
    v = d.tensor(B, T, N, G, E)
    decay = d.tensor(G, dtype=torch.float32).abs() if d.of([0, 1]) else None
    elapsed = d.tensor(B, T, dtype=torch.float32).abs() if d.of(
        [0, 1]) else None
    chunk, state, parts = d.size(1, 9), None, []
    for start in range(0, T, chunk):
        part = slice(start, start + chunk)
        y, state = frame_causal_linear_attention(
            q[:, part], k[:, part], v[:, part], decay, state,
            None if elapsed is None else elapsed[:, part],
            chunk_frames=d.size(1, 9))
        parts.append(y)
    assert y.dtype == d.dtype
    d.same(torch.cat(parts, 1), naive_frame_causal_linear_attention(
        *_double(q, k, v), *(None if x is None else x.double()
                             for x in (decay, elapsed))), v)


def check_periodic_shift(data):
    d = Draw(data)
    x = d.tensor(*d.sizes(4, high=5), d.of([4, 8, 12]))
    fraction = d.of([1 / 8, 1 / 4, 1 / 2])
    first = d.of(['next', 'previous'])
    assert torch.equal(periodic_shift(x, fraction, first),
                       naive_periodic_shift(x, fraction, first))
    # plain_shift treats all heads as one; token_shift moves class tokens only.
    flat = x.flatten(3)
    assert torch.equal(
        plain_shift(x, fraction, first).flatten(3),
        naive_periodic_shift(flat[:, :, :, None], fraction, first)[:, :, :, 0])
    expected = flat.clone()
    expected[:, :, :1] = naive_periodic_shift(
        flat[:, :, :1, None], fraction, first)[:, :, :, 0]
    assert torch.equal(token_shift(flat, fraction, first), expected)


def check_windows(data):
    d = Draw(data)
    size = d.sizes(3, high=4)
    x = d.tensor(d.size(1, 2), *d.sizes(3, high=7), d.size(1, 3))
    windows, mask = window_partition(x, size)
    expected, wanted_mask = naive_window_partition(x, size)
    assert torch.equal(windows, expected)
    assert (mask is None) == (wanted_mask is None)
    assert mask is None or torch.equal(mask, wanted_mask)
    grid = tuple(x.shape[1:4])
    assert torch.equal(window_merge(windows, size, grid), x)
    assert torch.equal(naive_window_merge(windows, size, grid), x)


def check_temporal_smoothing(data):
    d = Draw(data)
    q, k, v = d.qkv()
    options = dict(decay=d.of([1., .9, .5]))
    if d.of([0, 1]):
        options['key_mask'] = d.mask(*k.shape[:-2])
    d.same(temporal_smoothing_attention(q, k, v, **options),
           naive_temporal_smoothing_attention(*_double(q, k, v), **options),
           v, max(1e-8, TOLERANCES[d.dtype]))


def check_window_smoothing(data):
    d = Draw(data, FULL)
    K, N, G, D, E = *d.sizes(3, high=6), *d.sizes(2)
    lead = d.lead()
    q, k = d.tensor(N, G, D), d.tensor(*lead, K, G, D)
    v, decay = d.tensor(*lead, K, G, E), d.of([1., .8])
    mask = d.mask(*lead, K) if d.of([0, 1]) else None
    got = window_smoothing(sample_scores(q, k), v, mask=mask, decay=decay)
    d.same(got, naive_temporal_smoothing_attention(
        q.double().expand(*lead, *q.shape), *_double(k, v), decay=decay,
        key_mask=mask), v, tolerance=1e-5)


def check_exponential_smoothing(data):
    d = Draw(data, FULL)
    T, N, G, D, E = *d.sizes(3, high=7), *d.sizes(2)
    q, k = d.tensor(N, G, D), d.tensor(T, G, D, scale=d.of([1., 30.]))
    v, decay = d.tensor(T, G, E), d.of([1., .9])
    expected = naive_exponential_smoothing(*_double(q, k, v), decay=decay)
    state = None
    for t in range(T):
        scores = sample_scores(q, k[t])
        if state is None:
            state = smoothing_state(scores, E)
        got, state = exponential_smoothing(scores, v[t], state, decay=decay)
        d.same(got, expected[t], v, tolerance=1e-4)


def check_rings(data):
    d = Draw(data)
    lead, M = d.lead(), d.size(2, 6)
    ring = torch.zeros(*lead, M, 3, dtype=d.dtype)
    streams = [list() for _ in range(max(1, torch.Size(lead).numel()))]
    for step in range(d.size(1, 12)):
        row = d.tensor(*lead, 3) if lead else d.tensor(3)
        t = torch.full(lead, step)
        keep = torch.rand(lead, generator=d.generator) > .5
        if step and d.of([0, 1]):
            push_row(ring, t, row, keep)
        else:
            keep = torch.ones(lead, dtype=torch.bool)
            write_row(ring, t, row)
        for stream, x, new in zip(
                streams, row.reshape(-1, 3), keep.reshape(-1)):
            stream.append(x if new else stream[-1])
    last = len(streams[0]) - 1
    steps = torch.arange(max(0, last - M + 1), last + 1)
    got = read_rows(ring, steps.expand(*lead, -1))
    for rows, stream in zip(got.reshape(-1, len(steps), 3), streams):
        assert torch.equal(rows, torch.stack(stream[-M:]))
    number = d.size(0, M)
    fill_rows(ring, torch.full(lead, last + 1), number, row)
    for rows, stream, x in zip(
            ring.reshape(-1, M, 3), streams, row.reshape(-1, 3)):
        for t in range(last + 1, last + 1 + number):
            assert torch.equal(rows[t % M], x)
        for t in range(max(0, last + 1 + number - M), last + 1):
            assert torch.equal(rows[t % M], stream[t])


CHECKS = {name.removeprefix('check_'): check
          for name, check in list(globals().items())
          if name.startswith('check_')}


def _run(name, examples, **options):
    check = CHECKS[name]
    hypothesis.settings(
        max_examples=examples, deadline=None, database=None,
        suppress_health_check=list(hypothesis.HealthCheck), **options)(
            hypothesis.given(st.data())(lambda data: check(data)))()


@pytest.mark.parametrize('name', CHECKS)
def test_op_equals_definition(name):
    _run(name, 50, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize('name', CHECKS)
def test_op_equals_definition_with_many_examples(name):
    _run(name, 1000)
