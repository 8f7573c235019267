# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Attentions beyond their contract: goldens, tables, random numbers."""
import pytest
import torch
from einops import rearrange
from ops.attentions import naive

from mmvidattn.layers import (
    LARAAttention,
    LinformerAttention,
    PerformerAttention,
    VideoSelfAttention,
)
from mmvidattn.ops import feature_map

GRID = (4, 3, 5)
LINEAR = dict(type='LinearAttention', offset='auto')
TSM = dict(mode='tsm', divisor=4)


def _module(attention=LINEAR, pattern='joint', **kwargs):
    torch.manual_seed(0)
    return VideoSelfAttention(
        12, 3, attention, GRID, pattern=pattern, **kwargs).double()


@pytest.mark.parametrize('across_heads', [False, True])
def test_fixation_first_shifts_reweighted_keys(across_heads):
    module = _module(
        fixation=dict(across_heads=across_heads),
        shifts=[TSM, dict(mode='cross', divisor=8)], fixation_first=True)
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    q, k, v = (y.unflatten(-1, (3, 4)) for y in module.qkv(x).chunk(3, -1))
    q, k = (feature_map(y, 'relu', 4**-0.5) for y in (q, k))
    q, k = module.fixation(q, k, v)
    for shift in module.shifts:
        k, v = (naive.neighbor_shift(y.flatten(-2), shift.plan).unflatten(
            -1, (3, 4)) for y in (k, v))
    q, k, v = (y.flatten(1, 3).transpose(1, 2) for y in (q, k, v))
    scores = q @ k.mT
    y = scores @ v / (scores.sum(-1, keepdim=True) + 1e-6)
    want = module.proj(y.transpose(1, 2).flatten(2).unflatten(1, GRID))
    assert torch.allclose(module(x), want, atol=1e-10)
    module.fixation_first = False
    assert not torch.allclose(module(x), want, atol=1e-3)


@pytest.mark.parametrize('pattern', ['time', 'space', 'joint'])
def test_performer_gates_the_features_of_each_sequence(pattern):
    """Eqs. 4 and 5 of feature fixation gate mapped queries and keys."""
    module = _module(dict(type='PerformerAttention', num_features=5), pattern,
                     fixation={})
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    axes = dict(time='b h w t', space='b t h w', joint='b t h w')[pattern]
    split = dict(time=3, space=2, joint=1)[pattern]
    q, k, v = (rearrange(y, f'b t h w (g d) -> {axes} g d', g=3).flatten(
        split, 3) for y in module.qkv(x).chunk(3, -1))
    q, k = (naive.performer_features(y, module.attention.projection,
                                     is_query) for y, is_query in
            ((q, True), (k, False)))
    q, k = module.fixation(q, k, v)
    y = naive.linear_attention(q, k, v, eps=0.).flatten(-2)
    sizes = dict(zip('thw', GRID))
    y = y.reshape(2, *(sizes[axis] for axis in axes[2:].split()), 12)
    want = module.proj(rearrange(y, f'{axes} c -> b t h w c'))
    assert torch.allclose(module(x), want, atol=1e-12)


def test_lara_draws_samples_around_the_landmarks_in_training():
    attention = LARAAttention(4, 3, GRID, num_landmarks=9).double().train()
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
    module = VideoSelfAttention(
        48, 3, dict(type='LARAAttention', num_landmarks=g['num_landmarks']),
        (1, 6, 6), pattern='space').double().eval()
    module.load_state_dict(state_dict)
    y = module(g['x'].unsqueeze(1).double()).squeeze(1)
    assert (y - g['out']).norm() < 1e-10 * g['out'].norm()


def test_performer_projection_is_drawn_once():
    torch.manual_seed(5)
    first, second = PerformerAttention(4, 3, GRID), PerformerAttention(
        4, 3, GRID)
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
    for projection in LinformerAttention(4, 3, (30, 40)).parameters():
        # U(-1/16, 1/16).
        assert .0624 < projection.abs().max() <= .0625
        assert projection.std().item() == pytest.approx(
            .0625 / 3**.5, rel=.01)
