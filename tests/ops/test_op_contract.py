# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of the ops: each equals its reference for random arguments.

hypothesis draws shapes, dtypes, strides, masks and options, and shrinks a
failing case. The reference computes in float64.
"""
import inspect
from functools import partial

import pytest
import torch
from ops.attentions import ATTENTIONS, in_parts, naive

from mmvidattn import ops
from mmvidattn.ops.depthwise_conv import depthwise_conv
from mmvidattn.ops.fused_feature_fixation import (
    Gate,
    Options,
    fixated_attention,
)
from mmvidattn.ops.neighbor_shift import (
    causal_neighbor_shift,
    causal_plan,
    shift_memory,
)
from mmvidattn.ops.patch_conv import patch_conv
from mmvidattn.ops.stream_smoothing import (
    exponential_smoothing,
    sample_scores,
    smoothing_state,
    window_smoothing,
)
from mmvidattn.ops.unprojected_attention import unprojected_attention
from mmvidattn.ops.window import fit_window, window_merge, window_partition

hypothesis = pytest.importorskip('hypothesis')
st = hypothesis.strategies

TOLERANCES = {torch.float64: 1e-10, torch.float32: 2e-5,
              torch.bfloat16: 2e-2, torch.float16: 3e-3}
FULL = [torch.float64, torch.float32]
HALF = [torch.bfloat16, torch.float16]
LAYOUTS = ['contiguous', 'transposed', 'every second', 'offset', 'expanded']


class Draw:
    """Random arguments for a test, drawn from hypothesis' data."""

    def __init__(self, data, dtypes=tuple(TOLERANCES)):
        self._data = data
        self.dtype = self.of(dtypes)
        self.wide = torch.promote_types(self.dtype, torch.float32)
        self.generator = torch.Generator().manual_seed(self.size(0, 2**16))

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
        mask[..., -1] = True
        return mask

    def bias(self, *shape):
        """Draw a bias that broadcasts to [*, M]; -inf masks the first key."""
        shape = shape[-self.size(1, len(shape)):]
        bias = self.tensor(*(self.of([1, n]) for n in shape[:-1]), shape[-1])
        if shape[-1] > 1:
            bias = bias.clone()
            bias[..., 0] = -torch.inf
        return bias

    def qkv(self, lead=None, scale=1., even=False):
        lead = self.lead() if lead is None else lead
        N, M, G, D, E = *self.sizes(2, high=12), self.size(1, 3), \
            *self.sizes(2, high=9)
        return (self.tensor(*lead, N, G, D, scale=scale),
                self.tensor(*lead, M, G, D, scale=scale),
                self.tensor(*lead, M, G, (1 + even) * E))

    def autocast(self, is_possible=True):
        """Draw whether autocast is active."""
        return torch.autocast('cpu', dtype=torch.bfloat16, enabled=bool(
            is_possible and self.of([0, 1])))

    def compare(self, op, reference, *inputs, terms=None, tolerance=None):
        """Compare an op, also in inference, and its gradients."""
        tolerance = tolerance or TOLERANCES[self.dtype]
        leaves, wide = ([x.detach().to(dtype or x.dtype).requires_grad_()
                         for x in inputs] for dtype in (None, torch.float64))
        got, want = op(*leaves), reference(*wide)
        # Sums may cancel: the error is relative to their terms.
        size = max(_rms(want), 1e-6, 0. if terms is None else _rms(terms))
        with torch.no_grad():
            inference = op(*leaves)
        for y in got, inference:
            assert y.dtype == self.dtype and y.shape == want.shape
            assert y.isfinite().all()
            assert _rms(y.double() - want) < size * tolerance
        weight = torch.randn(want.shape, generator=self.generator).double()
        got, want = (
            torch.autograd.grad((y.double() * weight).sum(), x,
                                materialize_grads=True)
            for y, x in ((got, leaves), (want, wide)))
        largest = max(1e-3, *map(_rms, want))
        for a, b in zip(got, want):
            assert a.isfinite().all()
            rounding = max(tolerance, TOLERANCES[a.dtype])
            assert _rms(a.double() - b) < largest * 5 * rounding


def _rms(x):
    return (x.double().square().sum() / max(x.numel(), 1)).sqrt().item()


def _by_sequence(function, x, axes):
    """Apply a reference to each tensor of the last ``axes`` axes."""
    lead = x.shape[:x.dim() - axes]
    y = torch.stack([function(part) for part in
                     x.reshape(-1, *x.shape[x.dim() - axes:])])
    return y.view(*lead, *y.shape[1:])


def check_attention(data, case):
    d = Draw(data, FULL if case.name == 'lara_attention' else TOLERANCES)
    q, k, v = d.qkv(scale=1. if case.mapped else .5,
                    even=case.name == 'polaformer_attention')
    extra = case.extra(k, d.size(1, 7), d.generator)
    drawn = dict(
        scale=lambda: .7, eps=lambda: .1, decay=lambda: d.of([.9, .5]),
        key_mask=lambda: d.mask(*k.shape[:-2]),
        bias=lambda: d.bias(*k.shape[:-3], k.shape[-2], q.shape[-3],
                            k.shape[-3]))
    options = {name: drawn[name]() for name in inspect.signature(
        case.naive).parameters if name in drawn and d.of([0, 1])}
    order = dict(order=d.of(['auto', 'left', 'right'])) if (
        case.takes_order) else {}
    if case.half and d.dtype in HALF and d.of([0, 1]):
        # Under autocast, a gate returns float32 and a projection does not.
        q, k = q.float(), k.float()
    autocast = d.autocast(case.half)

    def attend(*args):
        with autocast:
            return case(*args, **options, **order)

    d.compare(attend, partial(case.reference, **options), q, k, v, *extra,
              terms=v,
              tolerance=1e-4 if case.name == 'lara_attention' else None)


def check_fixated_attention(data):
    d = Draw(data, FULL)
    heads, width = d.of([1, 2, 4]), d.of([6, 8])
    shape = d.size(1, 2), d.of([2, 4]), d.of([1, 3]), d.of([2, 4])
    shifts = []
    for _ in range(d.size(0, 2)):
        mode, options = d.of([
            ('tsm', dict(divisor=4)), ('tsm', dict(divisor=2, size=3)),
            ('window', dict(alpha=.5)), ('cross', dict(divisor=8)),
            ('square', dict(alpha=.3)), ('eight', {})])
        plan = ops.shift_plan(mode, heads * width, **options,
                              boundary=d.of([None, 'zero', 'self']))
        shifts.append((plan, d.of([None, shape[1] // 2])))
    gates, weights = [], []
    kind = d.of(['', 'qk separate', 'q', 'qk'])
    for name in kind.split(' ')[0]:
        inputs = name if 'separate' in kind else d.of(['qk', 'qkv'])
        gates.append(Gate(inputs, d.of(['concat', 'add'])))
        number = len(inputs) if gates[-1].aggregate == 'concat' else 1
        weights += [d.tensor(width, number * width, scale=.3), d.tensor(width)]
    options = Options(
        heads, d.of(['space', 'time', 'joint']),
        d.of(['relu', 'elu+1', 'sigmoid']), d.of([0., .3]),
        d.of(['auto', 'left', 'right']), d.of([1e-6, .1]), tuple(shifts),
        *gates)
    qkv = d.tensor(*shape, 3 * heads * width)
    d.compare(lambda qkv, *w: fixated_attention(qkv, w, options),
              lambda qkv, *w: naive.fixated_attention(qkv, w, options),
              qkv, *weights, terms=qkv)


def check_top_share_attention(data):
    d = Draw(data, FULL)
    q, k, v = d.qkv([d.size(1, 3)])
    B, M = k.shape[:2]
    numbers = torch.randint(1, M + 1, (B, ), generator=d.generator)
    mask = torch.arange(M) < numbers[:, None]
    share, padded = d.of([.2, .5, .75, 1.]), d.of([0, 1])
    options = dict(num_keys=numbers, key_mask=mask) if padded else {}

    def by_clip(q, k, v):
        parts = []
        for b, number in enumerate(numbers if padded else [M] * B):
            scores = torch.einsum('ngd,mgd->gnm', q[b] / q.shape[-1]**.5,
                                  k[b, :number])
            kept = max(1, int(share * number))
            least = scores.sort(descending=True).values[..., kept - 1, None]
            # The order of equal scores depends on rounding.
            scores = scores.masked_fill(scores <= least - 1e-6, -torch.inf)
            parts.append(torch.einsum('gnm,mge->nge', scores.softmax(-1),
                                      v[b, :number]))
        return torch.stack(parts)

    d.compare(partial(ops.top_share_attention, share=share, **options),
              by_clip, q, k, v, terms=v)


def check_unprojected_attention(data):
    d = Draw(data)
    B, N, M, L, G, D, C = (d.size(low, high) for low, high in (
        (1, 3), (1, 4), (1, 6), (0, 5), (1, 3), (1, 6), (1, 9)))
    score_bias = d.bias(B, G, N, M + L)

    def projected(q, x, weight, bias, k, v):
        keys, values = torch.nn.functional.linear(
            x, weight, bias).unflatten(-1, (2 * G, D)).chunk(2, dim=-2)
        return naive.softmax_attention(
            q, torch.cat([keys, k], 1), torch.cat([values, v], 1),
            bias=score_bias)

    d.compare(
        lambda *inputs: unprojected_attention(*inputs, score_bias), projected,
        d.tensor(B, N, G, D), d.tensor(B, M, C), d.tensor(2 * G * D, C),
        d.tensor(2 * G * D), *(d.tensor(B, L, G, D) for _ in range(2)),
        terms=torch.ones(1))


def check_frame_delta_rule(data):
    d = Draw(data)
    B, T, N, M, G, D, E = (d.size(1, n) for n in (2, 9, 4, 4, 3, 5, 5))
    frames, autocast = d.size(1, 9), d.autocast()

    def step(*inputs):
        with autocast:
            y, state = ops.frame_delta_rule(*inputs)
        assert state.dtype == d.wide
        return y, state

    v = d.tensor(B, T, M, G, E)
    d.compare(
        lambda *inputs: in_parts(step, frames, *inputs)[0],
        naive.frame_delta_rule, d.tensor(B, T, N, G, D),
        d.tensor(B, T, M, G, D), v, d.tensor(B, T, M, G).sigmoid(),
        -d.tensor(B, T, G, dtype=torch.float32).abs(), terms=v)


def _check_causal(data, name):
    d, is_linear = Draw(data), 'linear' in name
    op, reference = getattr(ops, name), getattr(naive, name)
    B, T, N, G, D, E = (d.size(1, n) for n in (2, 9, 4, 3, 5, 5))
    q, k = (d.tensor(B, T, N, G, D) for _ in range(2))
    if is_linear:
        # At zero, the gradients would be divided by eps.
        q, k = q.relu() + .1, k.relu() + .1
    v = d.tensor(B, T, N, G, E)
    decay = d.tensor(G, dtype=torch.float32).abs()
    elapsed = d.tensor(B, T, dtype=torch.float32).abs()
    frames, chunk, decays, timed = d.size(1, 9), d.size(1, 9), *(
        d.of([0, 1]) for _ in range(2))
    window = () if is_linear else (chunk, )
    options = dict(chunk_frames=chunk) if is_linear else {}
    autocast = d.autocast(is_linear)

    def stream(q, k, v, decay, elapsed):

        def step(q, k, v, times, state):
            with autocast:
                y, state = op(q, k, v, *window, decay if decays else None,
                              state, times if timed else None, **options)
            assert state[0 if is_linear else 2].dtype == d.wide
            return y, state

        return in_parts(step, frames, q, k, v, elapsed)[0]

    def whole(q, k, v, decay, elapsed):
        return reference(q, k, v, *window, decay if decays else None,
                         elapsed if timed else None)

    d.compare(stream, whole, q, k, v, decay, elapsed, terms=v)


def check_orthogonal_landmarks(data):
    d = Draw(data, FULL)
    q, _, _ = d.qkv()
    # For equal queries, or width 1, the choice would depend on rounding.
    q = torch.randn(*q.shape[:-1], 5, generator=d.generator).to(d.dtype)
    number = d.size(1, 6)
    first = torch.randint(q.shape[-3], (*q.shape[:-3], q.shape[-2]),
                          generator=d.generator)
    chosen = ops.orthogonal_landmarks(q, number, first)
    for head, index, result in zip(
            q.double().transpose(-3, -2).reshape(-1, q.shape[-3], 5),
            first.flatten(),
            chosen.transpose(-2, -1).reshape(-1, chosen.shape[-2])):
        assert torch.equal(result, naive.orthogonal_landmarks(
            head, number, index))


def check_landmark_pool(data):
    d = Draw(data)
    shape = d.sizes(d.size(1, 3), high=6)
    grid = ops.landmark_grid(
        shape, d.size(1, 3)**2 if len(shape) == 2 else d.size(1, 9))
    x = d.tensor(*d.lead(), torch.Size(shape).numel(), 2, 3)
    d.compare(
        lambda x: ops.landmark_pool(x, shape, grid), lambda x: _by_sequence(
            lambda tokens: naive.landmark_pool(tokens, shape, grid), x, 3),
        x, terms=x)


def check_rotary_positions(data):
    d = Draw(data)
    shape = d.sizes(d.size(1, 3), high=3)
    options = d.of([{}, dict(paired=False), dict(span=16), dict(num_axes=1)])
    x = d.tensor(*d.lead()[:1], torch.Size(shape).numel(), 2, d.size(3, 13))
    d.compare(
        lambda x: ops.rotary_positions(x, shape, **options),
        lambda x: _by_sequence(lambda tokens: naive.rotary_positions(
            tokens, shape, **options), x, 3), x)
    if len(shape) == 3 and options != dict(num_axes=1):
        # Each sample has its own times.
        times = torch.tensor([[*range(shape[0])], [*range(5, 5 + shape[0])]])
        times[:, -1] += 3
        x = d.tensor(2, *x.shape[-3:])
        d.compare(
            lambda x: ops.rotary_positions(x, shape, times=times, **options),
            lambda x: torch.stack([naive.rotary_positions(
                one, shape, times=time, **options)
                for one, time in zip(x, times)]), x)


def check_feature_map(data):
    d = Draw(data)
    expected = {
        'relu': lambda x: x.clamp(min=0),
        'elu+1': lambda x: torch.where(x > 0, x + 1, x.exp()),
        'sigmoid': lambda x: 1 / (1 + (-x).exp()), 'identity': lambda x: x}
    kind = d.of(expected)
    d.compare(lambda x: ops.feature_map(x, kind, .25),
              lambda x: expected[kind](x) + .25, d.tensor(*d.lead(), 4))


def check_fixation_ratio(data):
    d = Draw(data)
    lead, D, n = (*d.lead(), d.size()), d.size(), d.size(1, 3)
    aggregate = d.of(['concat', 'add', 'mul'])

    def with_inputs(function):
        return lambda weight, bias, *inputs: function(
            inputs, weight, bias, aggregate)

    d.compare(
        with_inputs(ops.fixation_ratio), with_inputs(naive.fixation_ratio),
        d.tensor(D, D * (n if aggregate == 'concat' else 1), scale=.3),
        d.tensor(D), *(d.tensor(*lead, D) for _ in range(n)))


def check_neighbor_shift(data):
    d = Draw(data)
    mode, options = d.of([
        ('tsm', dict(divisor=d.size(2, 5))),
        ('window', dict(alpha=d.of([0., .5, .75]))),
        ('cross', dict(divisor=d.size(4, 6))),
        ('cross', dict(alpha=d.of([.25, .5]))),
        ('square', dict(alpha=d.of([0., .5]))), ('eight', {})])
    plan = ops.shift_plan(mode, d.size(8, 110), size=d.size(1, 2),
                          boundary=d.of([None, 'zero', 'self']),
                          **options)
    channels = max([8, *(fold.stop for fold in plan)])
    d.compare(
        lambda x: ops.neighbor_shift(x, plan),
        lambda x: naive.neighbor_shift(x, plan),
        d.tensor(d.size(1, 2), *d.sizes(3, high=4), channels))


def check_causal_neighbor_shift(data):
    d = Draw(data)
    mode, options = d.of([('tsm', dict(divisor=d.size(2, 5))),
                          ('window', dict(alpha=d.of([0., .5])))])
    channels = d.size(8, 40)
    plan = causal_plan(ops.shift_plan(mode, channels, size=d.size(1, 3),
                                      **options))
    x = d.tensor(d.size(1, 2), *d.sizes(3, high=5), channels)
    frames, start, stop = shift_memory(plan)
    hypothesis.assume(frames)
    y, _ = in_parts(
        lambda x, state: causal_neighbor_shift(x, plan, state), d.size(1, 5),
        x, state=x.new_zeros(len(x), frames, *x.shape[2:4], stop - start))
    assert torch.equal(y, naive.neighbor_shift(x, plan))


def check_periodic_shift(data):
    d = Draw(data)
    x = d.tensor(*d.sizes(4, high=5), d.of([4, 8, 12]))
    args = d.of([1 / 8, 1 / 4, 1 / 2]), d.of(['next', 'previous'])

    def channels(x):
        return naive.periodic_shift(x[:, :, :, None], *args)[:, :, :, 0]

    d.compare(lambda x: ops.periodic_shift(x, *args),
              lambda x: naive.periodic_shift(x, *args), x)
    # plain_shift treats all heads as one; token_shift moves class tokens only.
    d.compare(lambda x: ops.plain_shift(x, *args),
              lambda x: channels(x.flatten(3)).view(x.shape), x)
    d.compare(lambda x: ops.token_shift(x, *args), lambda x: torch.cat(
        [channels(x[:, :, :1]), x[:, :, 1:]], 2), x.flatten(3))


def check_window_partition(data):
    d = Draw(data)
    size = d.sizes(3, high=4)
    x = d.tensor(d.size(1, 2), *d.sizes(3, high=7), d.size(1, 3))
    windows, mask = window_partition(x, size)
    expected, wanted_mask = naive.window_partition(x, size)
    assert torch.equal(windows, expected)
    assert (mask is None) == (wanted_mask is None)
    assert mask is None or torch.equal(mask, wanted_mask)
    grid = tuple(x.shape[1:4])
    assert torch.equal(window_merge(windows, size, grid), x)
    assert fit_window(size, grid) == tuple(map(min, size, grid))


def check_depthwise_conv(data):
    d = Draw(data, [*FULL, torch.bfloat16])
    C, kernel = d.size(2, 8), [d.of([1, 3, 5]) for _ in range(3)]
    x = d.tensor(d.size(1, 2), *d.sizes(3), C)
    bias = [d.tensor(C)] * d.size(0, 1)
    d.compare(depthwise_conv, naive.depthwise_conv, x,
              d.tensor(C, 1, *kernel), *bias, terms=torch.ones(1))


def check_patch_conv(data):
    d = Draw(data, [*FULL, torch.bfloat16])
    kernel, C = d.sizes(3, high=3), d.size(1, 5)
    x = d.tensor(d.size(1, 2), *(
        k * d.size(1, 2) + d.size(0, k - 1) for k in kernel), C)
    if d.of([0, 1]):
        # Clips have their channels before the frames.
        x = x.movedim(-1, 1).contiguous().movedim(1, -1)
    shape = d.of([(C, 1), (d.size(), C)])
    d.compare(patch_conv, naive.patch_conv, x, d.tensor(*shape, *kernel),
              *[d.tensor(shape[0])] * d.size(0, 1), terms=torch.ones(1))


def check_window_smoothing(data):
    d = Draw(data, FULL)
    K, N, G, D, E = *d.sizes(3, high=6), *d.sizes(2)
    lead = d.lead()
    decay, mask = d.of([1., .8]), d.of([None, d.mask(*lead, K)])
    d.compare(
        lambda q, k, v: window_smoothing(
            sample_scores(q, k), v, mask=mask, decay=decay),
        lambda q, k, v: naive.temporal_smoothing_attention(
            q.expand(*lead, *q.shape), k, v, decay=decay, key_mask=mask),
        d.tensor(N, G, D), d.tensor(*lead, K, G, D), d.tensor(*lead, K, G, E),
        terms=torch.ones(1), tolerance=1e-5)


def check_exponential_smoothing(data):
    d = Draw(data, FULL)
    T, N, G, D, E = *d.sizes(3, high=7), *d.sizes(2)
    decay = d.of([1., .9])

    def sample_by_sample(q, k, v):
        state, steps = smoothing_state(sample_scores(q, k[0]), E), []
        for key, value in zip(k, v):
            y, state = exponential_smoothing(
                sample_scores(q, key), value, state, decay=decay)
            steps.append(y)
        return torch.stack(steps)

    d.compare(
        sample_by_sample, partial(naive.exponential_smoothing, decay=decay),
        # The released recursion overflows for scores above 88.
        d.tensor(N, G, D), d.tensor(T, G, D, scale=d.of([1., 30., 300.])),
        d.tensor(T, G, E), terms=torch.ones(1), tolerance=1e-4)


CHECKS = {
    **{name: partial(check_attention, case=case)
       for name, case in ATTENTIONS.items()},
    **{name: partial(_check_causal, name=name) for name in (
        'frame_causal_linear_attention', 'frame_causal_softmax_attention')},
    **{name.removeprefix('check_'): check
       for name, check in list(globals().items())
       if name.startswith('check_') and name != 'check_attention'}}
# Attentions that no released code checks.
MORE = ('mala', 'rala', 'polaformer', 'frame_delta_rule', 'fixated_attention')
# References that other tests compare with, or that are parts of a reference.
ELSEWHERE = {'leap_attention', 'performer_features'}


def test_each_reference_has_a_check():
    checked = {*CHECKS, *(case.name for case in ATTENTIONS.values())}
    assert vars(naive).keys() - checked == ELSEWHERE


def _run(name, examples, **options):
    hypothesis.settings(
        max_examples=examples, deadline=None, database=None,
        suppress_health_check=list(hypothesis.HealthCheck), **options)(
            hypothesis.given(st.data())(lambda data: CHECKS[name](data)))()


@pytest.mark.parametrize('name', CHECKS)
def test_op_equals_definition(name):
    _run(name, 60 if name in MORE else 40, derandomize=True)


@pytest.mark.slow
@pytest.mark.parametrize('name', CHECKS)
def test_op_equals_definition_with_many_examples(name):
    _run(name, 1000)
