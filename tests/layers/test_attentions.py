# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attentions beyond their contract: goldens, tables, random numbers."""
import pytest
import torch
from ops.attentions import naive
from torch import nn

from mmvidattn import layers
from mmvidattn.layers.video_self_attention import from_sequences, to_sequences

GRID = (4, 3, 5)


def _module(attention, pattern, **kwargs):
    torch.manual_seed(0)
    return layers.VideoSelfAttention(
        12, 3, attention, GRID, pattern=pattern, **kwargs).double()


@pytest.mark.parametrize('pattern', ['time', 'space', 'joint'])
def test_performer_gates_the_features_of_each_sequence(pattern):
    """Eqs. 4 and 5 of feature fixation gate mapped queries and keys."""
    module = _module(dict(type='PerformerAttention', num_features=5), pattern,
                     fixation={})
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    q, k, v = (to_sequences(y, pattern)
               for y in module.qkv(x).unflatten(-1, (3, 3, 4)).unbind(-3))
    q, k = (naive.performer_features(y, module.attention.projection,
                                     is_query) for y, is_query in
            ((q, True), (k, False)))
    q, k = module.fixation(q, k, v)
    y = naive.linear_attention(q, k, v, eps=0.)
    want = module.proj(from_sequences(y, pattern, GRID).flatten(-2))
    assert torch.allclose(module(x), want, atol=1e-12)


def test_lara_draws_samples_around_the_landmarks_in_training():
    attention = layers.LARAAttention(4, 3, GRID, num_landmarks=9).double()
    attention.train()
    q, k, v = torch.randn(3, 60, 3, 4, dtype=torch.float64).unbind(0)
    torch.manual_seed(5)
    y = attention(q, k, v, GRID, GRID)
    torch.manual_seed(5)
    noise = torch.randn(8, 3, 4, dtype=torch.float64)
    landmarks = [
        generator(naive.landmark_pool(x, GRID, (2, 2, 2)))
        for x, generator in ((q, attention.q_generator),
                             (k, attention.k_generator))]
    want = naive.lara_attention(q, k, v, *landmarks, sum(landmarks) + noise)
    assert (y - want).norm() < 1e-10 * want.norm()


def test_golden_lara(golden):
    """Outputs of the released code in evaluation, for a 2D grid of tokens."""
    g = golden('linear/golden_attn.pt')['lara_pool_mis-opt']
    names = {
        f'{x}_bar_gen.{released}': f'attention.{x}_generator.{ours}'
        for x in 'qk' for released, ours in ((2, 0), (3, 1))
    }
    state_dict = {}
    for key, value in g['params'].items():
        module, _, kind = key.rpartition('.')
        state_dict[f'{names.get(module, module)}.{kind}'] = value
    module = layers.VideoSelfAttention(
        48, 3, dict(type='LARAAttention', num_landmarks=g['num_landmarks']),
        (1, 6, 6), pattern='space').double().eval()
    module.load_state_dict(state_dict)
    y = module(g['x'].unsqueeze(1).double()).squeeze(1)
    assert (y - g['out']).norm() < 1e-10 * g['out'].norm()


def test_performer_projection_is_drawn_once():
    torch.manual_seed(5)
    first, second = (layers.PerformerAttention(4, 3, GRID) for _ in range(2))
    assert list(first.state_dict()) == ['projection']
    assert not torch.equal(first.projection, second.projection)
    q, k, v = torch.randn(3, 60, 3, 4).unbind(0)
    assert torch.equal(first.train()(q, k, v), first(q, k, v))


@pytest.mark.parametrize('pattern, window, keys', [
    ('time', None, 4), ('space', None, 15), ('joint', None, 60),
    ('window', 3, 45)])
def test_linformer_has_a_row_for_each_key(pattern, window, keys):
    module = _module(dict(type='LinformerAttention', num_projections=6),
                     pattern, window_frames=window)
    assert {key: p.shape for key, p in module.attention.named_parameters()
            } == dict(key_projection=(keys, 6), value_projection=(keys, 6))
    torch.manual_seed(0)
    for projection in layers.LinformerAttention(4, 3, (30, 40)).parameters():
        # U(-1/16, 1/16).
        assert .0624 < projection.abs().max() <= .0625
        assert projection.std().item() == pytest.approx(.0625 / 3**.5, rel=.01)


CASES = [('separate', 'qk', False, 'concat')] + [
    ('cooperative', inputs, shared, aggregate) for inputs in ('qk', 'qkv')
    for shared in (True, False) for aggregate in ('concat', 'add', 'mul')
]


@pytest.mark.parametrize('across_heads', [False, True])
@pytest.mark.parametrize('mode, inputs, shared, aggregate', CASES)
def test_matches_equations_4_and_5(mode, inputs, shared, aggregate,
                                   across_heads):
    """A map across the heads equals one head of all channels."""
    module = layers.FeatureFixation(
        8, mode, inputs, shared, aggregate, num_heads=3,
        across_heads=across_heads).double()
    tokens = torch.rand(3, 2, 5, 3, 8, dtype=torch.float64).unbind(0)
    got = module(*tokens)
    if across_heads:
        assert got[0].shape == tokens[0].shape
        got, tokens = ([x.flatten(-2) for x in y] for y in (got, tokens))
    for name, x, y in zip('qk', tokens, got):
        xs = [x] if mode == 'separate' else tokens[:len(inputs)]
        gate = module.gate if shared else getattr(module, f'{name}_gate')
        ratio = naive.fixation_ratio(xs, gate.weight, gate.bias, aggregate)
        assert torch.allclose(y, x * ratio, rtol=1e-12)


@pytest.mark.parametrize('case', ['shared', 'unshared', 'nogate', 'softmax'])
def test_golden_released_core(golden, case):
    """Feature map, gate and attention of the released code, in float64."""
    G = golden('linear/golden_attn.pt')
    q, k, v = (G[name].transpose(1, 2) for name in 'qkv')
    g = G[f'lvt_core_{case}']
    attention = layers.LinearAttention(16, 3, (20, ), offset='auto')
    if case == 'softmax':
        attention = layers.SoftmaxAttention(16, 3, (20, ))
    q, k = attention.feature_map(q), attention.feature_map(k)
    if g['gates']:
        fixation = layers.FeatureFixation(16, shared=case == 'shared').double()
        fixation.load_state_dict({
            name.replace('pgate', 'gate'): value
            for name, value in g['gates'].items()
        })
        q, k = fixation(q, k, v)
    y = attention(q, k, v)
    assert (y.transpose(1, 2) - g['core']).norm() < 1e-10 * g['core'].norm()
    proj = nn.Linear(48, 48).double()
    proj.load_state_dict({
        name.removeprefix('proj.'): value
        for name, value in g['proj'].items()
    })
    out = proj(y.flatten(-2))
    assert (out - g['out']).norm() < 1e-10 * g['out'].norm()
