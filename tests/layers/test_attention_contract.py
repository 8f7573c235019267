# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of all attentions that are registered in MODELS.

It runs inside VideoSelfAttention. A new attention needs no test code; a
reference in TWINS and options in VARIANTS make its contract stronger.
"""
import copy
import math

import pytest
import torch
from helpers import relative
from mmaction.registry import MODELS
from ops.attentions import naive
from registered import arguments_for, classes_of
from torch import nn

from mmvidattn.layers import BaseAttention, LinearAttention, VideoSelfAttention
from mmvidattn.layers.video_self_attention import TOKEN_AXES
from mmvidattn.ops import feature_map, landmark_grid

C, HEADS = 12, 3
GRID = 3, 2, 4
PATTERNS = 'time', 'space', 'joint', 'window'
SHIFT = dict(mode='tsm', divisor=4)
# Options that lead through different code.
VARIANTS = {
    'LinearAttention': [dict(offset='auto'), dict(kernel='elu+1')],
    'PerformerAttention': [dict(num_features=9)],
    'LinformerAttention': [dict(num_projections=6)],
    'OrthoformerAttention': [dict(num_landmarks=n) for n in (1, 3, 20)],
    'RotaryAttention': [{}, dict(paired=False), dict(span=5)],
    'LARAAttention': [dict(num_landmarks=9)],
}
CASES = [(cls, options) for cls in classes_of('layers')
         for options in VARIANTS.get(cls.__name__, [{}])]
EACH = pytest.mark.parametrize(
    'cls, options', CASES, ids=lambda x: getattr(x, '__name__', None) or
    '-'.join(map(str, x.values())))


def _linformer(attention, q, k, v, *shapes):
    E, F = attention.key_projection, attention.value_projection
    return naive.linformer_attention(q, k, v, E[:len(k)], F[:len(k)])


def _orthoformer(attention, q, k, v, *shapes):
    """Attend head by head; the first landmark is token 0."""
    return torch.cat([
        naive.orthoformer_attention(*(
            x[:, g:g + 1] for x in (q, k, v, q[naive.orthogonal_landmarks(
                q[:, g], attention.num_landmarks, 0)].detach())))
        for g in range(HEADS)], dim=1)


def _lara(attention, q, k, v, query_shape, key_shape):
    axes = min(len(query_shape), len(key_shape))
    grid = landmark_grid(query_shape[-axes:], attention.num_landmarks)
    landmarks = []
    for x, shape, generator in ((q, query_shape, attention.q_generator),
                                (k, key_shape, attention.k_generator)):
        y = naive.landmark_pool(x, shape, (1,) * (len(shape) - axes) + grid)
        linear, norm = generator
        y = _mapped(linear, y)
        y = y - y.mean(-1, keepdim=True)
        y = y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        landmarks.append(y * norm.weight + norm.bias)
    return naive.lara_attention(q, k, v, *landmarks, sum(landmarks))


def _mapped(linear, x):
    return x @ linear.weight.T + linear.bias


def _gated_delta(attention, q, k, v, decay=0., elapsed=torch.zeros(1, 1)):
    """Attend to frames [B, T, N, G, D]."""
    beta, forget = _mapped(attention.rates, torch.cat([k, v], -1)).unbind(-1)
    log_gate = -(1 + (forget.mean(2) - 4).exp()).log()
    y = naive.frame_delta_rule(q, k, v, 1 / (1 + (-beta).exp()),
                               log_gate - decay * elapsed[..., None])
    y = y / (y.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    gate = _mapped(attention.gate, q)
    return y * attention.norm.weight * gate / (1 + (-gate).exp())


def _rotary(attention, q, k, v, query_shape, key_shape):
    q, k = (naive.rotary_positions(
        x, shape, len(query_shape), attention.paired, attention.span)
        for x, shape in ((q, query_shape), (k, key_shape)))
    return naive.softmax_attention(q, k, v)


# References for one sequence, from mapped queries and keys [N, G, D], in
# evaluation. The axes of queries and keys are the last arguments.
TWINS = {
    **{f'{name}Attention': lambda a, *args, name=name: getattr(
        naive, f'{name.lower()}_attention')(*args[:3])
       for name in ('Softmax', 'Linear', 'CosFormer', 'MALA')},
    'PerformerAttention': lambda a, q, k, v, *_: naive.linear_attention(
        q, k, v, eps=0.),
    'LinformerAttention': _linformer,
    'OrthoformerAttention': _orthoformer,
    'LARAAttention': _lara,
    'RotaryAttention': _rotary,
    'RALAAttention': lambda a, q, k, v, *_: naive.rala_attention(
        q, k, v) * _mapped(a.gate, q),
    'PolaFormerAttention': lambda a, q, k, v, *_: naive.polaformer_attention(
        q, k, v, 1 + 4 / (1 + (-a.power).exp())) * _mapped(a.gate, q),
    # A sequence is the first frame of a stream.
    'GatedDeltaAttention': lambda a, *args: _gated_delta(
        a, *(x[None, None] for x in args[:3]))[0, 0],
}
# References for streams, from mapped queries and keys of frames
# [B, T, N, G, D], the rates of the decay, and the times between frames.
CAUSAL_TWINS = {
    'LinearAttention': lambda a, *args: naive.frame_causal_linear_attention(
        *args),
    'SoftmaxAttention': lambda a, q, k, v, *args:
    naive.frame_causal_softmax_attention(q, k, v, a.window_frames, *args),
    'GatedDeltaAttention': _gated_delta,
}


def build(cls, options, pattern='joint', grid=GRID, seed=0, **kwargs):
    torch.manual_seed(seed)
    module = VideoSelfAttention(
        C, HEADS, dict(type=cls.__name__, **options), grid, pattern=pattern,
        window_frames=2 if pattern == 'window' else None, **kwargs).double()
    for parameter in module.attention.parameters():
        nn.init.normal_(parameter)
    return module.eval()


def tokens(*grid, batch=2):
    return torch.randn(batch, *grid, C, dtype=torch.float64)


def sequences(grid, pattern):
    """Return indices [queries, keys] in [T, H, W], and the axes of both."""
    T, H, W = grid
    index = torch.arange(T * H * W).view(grid)
    if pattern == 'time':
        return [(i, i, (T, ), (T, )) for i in index.flatten(1).unbind(1)]
    if pattern == 'space':
        return [(i, i, (H, W), (H, W)) for i in index.flatten(1).unbind(0)]
    if pattern == 'joint':
        return [(index.flatten(), index.flatten(), grid, grid)]
    # A window of two frames stays inside the clip.
    first = [min(max(t - 1, 0), T - 2) for t in range(T)]
    return [(index[t].flatten(), index[f:f + 2].flatten(), (H, W), (2, H, W))
            for t, f in enumerate(first)]


def mapped(module, x, pattern):
    """Return queries, keys and values for an attention, [B, T, N, G, D]."""
    attention = module.attention
    q, k, v = module.qkv(x).unflatten(-1, (3, HEADS, -1)).unbind(-3)

    def shifted(y):
        for shift in module.shifts:
            y = naive.neighbor_shift(y.flatten(-2), shift.plan).view(y.shape)
        return y

    if not module.fixation_first:
        k, v = shifted(k), shifted(v)
    q, k = attention.feature_map(q), attention.key_map(k, TOKEN_AXES[pattern])
    if module.fixation is not None:
        q, k = module.fixation(q, k, v)
    if module.fixation_first:
        k, v = shifted(k), shifted(v)
    return [y.flatten(2, 3) for y in (q, k, v)]


def by_sequence(module, x, pattern):
    """Compute VideoSelfAttention sequence by sequence, with the reference.

    An attention without a reference is compared with itself, which shows that
    sequences are independent.
    """
    grid, attention = tuple(x.shape[1:4]), module.attention
    q, k, v = (y.flatten(1, 2) for y in mapped(module, x, pattern))

    def attend(*args):
        if twin := TWINS.get(type(attention).__name__):
            return twin(attention, *args)
        return attention(*args[:None if attention.takes_shapes else 3])

    out = torch.empty_like(v)
    for queries, keys, *shapes in sequences(grid, pattern):
        for b in range(len(x)):
            out[b, queries] = attend(
                q[b, queries], k[b, keys], v[b, keys], *shapes)
    return module.proj(out.flatten(2).unflatten(1, grid))


def test_attentions_are_of_the_base_class():
    assert all(issubclass(cls, BaseAttention) for cls, _ in CASES)


@pytest.mark.parametrize('pattern', PATTERNS)
@pytest.mark.parametrize('cls, options, more', [
    *((*case, more) for case in CASES
      for more in ({}, dict(fixation={}, shifts=[SHIFT]))),
    *((LinearAttention, dict(offset='auto'), dict(
        fixation=dict(across_heads=across_heads), fixation_first=True,
        shifts=[SHIFT, dict(mode='cross', divisor=8)]))
      for across_heads in (False, True))])
def test_equals_its_reference_and_learns(cls, options, more, pattern):
    module = build(cls, options, pattern, **more)
    for grid in GRID, (2, 1, 3):
        x = tokens(*grid).requires_grad_()
        got, want = module(x), by_sequence(module, x, pattern)
        assert relative(got, want) < 1e-10
        weight = torch.randn_like(got)
        a, b = (torch.autograd.grad((y * weight).sum(), x)[0]
                for y in (got, want))
        assert relative(a, b) < 1e-8
    x = tokens(*GRID)
    (module.train()(x) * torch.randn_like(x)).sum().backward()
    for name, p in module.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all(), name
        assert p.grad.abs().max() > 0, name


@pytest.mark.parametrize('name, kind', [
    ('CosFormerAttention', 'relu'), ('MALAAttention', 'elu+1'),
    ('RALAAttention', 'elu+1')])
def test_maps_queries_and_keys_as_in_the_paper(name, kind):
    attention = MODELS.build(dict(type=name, head_dims=4, num_heads=HEADS,
                                  seq_shape=GRID))
    x = torch.randn(5, HEADS, 4)
    for y in attention.feature_map(x), attention.key_map(x, (0, )):
        assert torch.equal(y, feature_map(x, kind))


@EACH
def test_accepts_larger_clips_or_names_the_limit(cls, options):
    module = build(cls, options)
    for grid in (1, 1, 1), (7, 4, 6):
        try:
            y = module(tokens(*grid))
        except ValueError as error:
            assert str(math.prod(grid)) in str(error)
        else:
            assert y.shape[1:4] == grid and y.isfinite().all()


@EACH
def test_evaluation_draws_no_random_numbers(cls, options):
    """Dropout and random landmarks act in training only."""
    options = {**options, **arguments_for(cls, dropout=.5)}
    options.update(arguments_for(cls, window_frames=2))
    is_causal = build(cls, options).attention.is_causal
    x = tokens(*GRID)
    for pattern in ('joint', 'causal') if is_causal else ('joint', ):
        for extra in {}, dict(dropout=.5):
            module = build(cls, options, pattern, **extra)
            before = torch.get_rng_state()
            y = module(x)
            assert torch.equal(module(x), y)
            assert torch.equal(torch.get_rng_state(), before)
            if extra or 'dropout' in options:
                module.train()
                assert not torch.equal(module(x), module(x))


@EACH
def test_half_precision_and_checkpoints_keep_the_outputs(cls, options):
    module, other = (build(cls, options, 'space', seed=seed)
                     for seed in (0, 1))
    x = tokens(*GRID)
    want = module(x)
    other.load_state_dict(module.state_dict(), strict=True)
    assert torch.equal(other(x), want)
    for dtype, tolerance in (torch.float16, 1e-2), (torch.bfloat16, 6e-2):
        y = copy.deepcopy(module).to(dtype)(x.to(dtype))
        assert y.dtype == dtype and relative(y, want) < tolerance


class _All(nn.ModuleList):

    def forward(self, x):
        return [module(x) for module in self]


def test_all_export_for_any_batch():
    """Export one program of all attentions, which saves time."""
    cases = dict(reversed(CASES))
    shift = dict(mode='window', alpha=.5, boundary='self')
    module = _All(
        build(cls, options, shifts=[shift] * (cls is LinearAttention))
        for cls, options in cases.items())
    program = torch.export.export(
        module, (tokens(*GRID, batch=3), ),
        dynamic_shapes=({0: torch.export.Dim.DYNAMIC}, )).module()
    for batch in 1, 5:
        x = tokens(*GRID, batch=batch)
        for cls, got, want in zip(cases, program(x), module(x)):
            assert relative(got, want) < 1e-12, cls


CAUSAL = [(cls, {**options, **arguments_for(cls, window_frames=2)})
          for cls, options in CASES]
CAUSAL = [(cls, options) for cls, options in CAUSAL
          if cls(4, HEADS, (3, 5), **options).is_causal]


@pytest.mark.parametrize('more', [{}, dict(fixation={}, shifts=[SHIFT])],
                         ids=['plain', 'all'])
@pytest.mark.parametrize('cls, options', CAUSAL)
def test_stream_equals_clip_and_reference(cls, options, more):
    module = build(cls, options, 'causal', decay=dict(half_life=(2, 8)),
                   **more)
    x, elapsed = tokens(7, 3, 5), .5 + torch.rand(2, 7).double()
    want, last = module.forward_causal(x, module.initial_state(x), elapsed)
    if twin := CAUSAL_TWINS.get(cls.__name__):
        y = twin(module.attention, *mapped(module, x, 'causal'),
                 module.decay(), elapsed)
        assert relative(want, module.proj(y.reshape(x.shape))) < 1e-10
    state, parts = module.initial_state(x), []
    for part, times in zip(x.split([1, 3, 1, 2], 1),
                           elapsed.split([1, 3, 1, 2], 1)):
        kept = {name: value.clone() for name, value in state.items()}
        y, new = module.forward_causal(part, state, times)
        assert all(torch.equal(state[name], kept[name]) for name in kept)
        parts.append(y)
        state = new
    assert relative(torch.cat(parts, 1), want) < 1e-10
    for name, value in state.items():
        torch.testing.assert_close(value, last[name])
    # Dropped frames only add their time.
    dropped = module.decay_state(state, torch.tensor([2., 0.]).double())
    got, _ = module.forward_causal(x[:, :1], dropped, elapsed[:, :1])
    later = elapsed[:, :1] + torch.tensor([[2.], [0.]]).double()
    want, _ = module.forward_causal(x[:, :1], state, later)
    assert relative(got, want) < 1e-10
