# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.ops import feature_map
from mmvidattn.ops.shift import naive_neighbor_shift

GRID = (4, 3, 5)


def _module(**kwargs):
    torch.manual_seed(0)
    kwargs.setdefault('attention', dict(type='LinearAttention', offset='auto'))
    return VideoSelfAttention(12, 3, grid_shape=GRID, **kwargs).double()


def _neighbors(pattern, window):
    """Return a mask of the tokens that attend to each other."""
    T, H, W = GRID
    t, y, x = torch.meshgrid(*(torch.arange(n) for n in GRID), indexing='ij')
    t, place = t.flatten(), (y * W + x).flatten()
    if pattern == 'time':
        return place[:, None] == place
    if pattern == 'space':
        return t[:, None] == t
    if pattern == 'joint':
        return torch.ones(len(t), len(t), dtype=torch.bool)
    first = (t - window // 2).clamp(0, T - window)[:, None]
    return (t >= first) & (t < first + window)


def _by_hand(module, x, pattern, window=None):
    """Compute one masked attention matrix over all tokens of the clip."""
    q, k, v = module.qkv(x).chunk(3, -1)
    for shift in module.shifts:
        k, v = (naive_neighbor_shift(y, shift.plan) for y in (k, v))
    q, k, v = (
        y.flatten(1, 3).unflatten(-1, (3, 4)).transpose(1, 2)
        for y in (q, k, v))
    mask = _neighbors(pattern, window)
    if hasattr(module.attention, 'kernel'):
        q, k = (feature_map(y, 'relu', 4**-0.5) for y in (q, k))
        if module.fixation is not None:
            q, k = module.fixation(q, k, v)
        scores = q @ k.mT * mask
        y = scores @ v / (scores.sum(-1, keepdim=True) + 1e-6)
    else:
        scores = (q @ k.mT * 4**-0.5).masked_fill(~mask, -torch.inf)
        y = scores.softmax(-1) @ v
    y = y.transpose(1, 2).flatten(2).unflatten(1, GRID)
    return module.proj(y)


@pytest.mark.parametrize('pattern, window', [('time', None), ('space', None),
                                             ('joint', None), ('window', 2),
                                             ('window', 3)])
@pytest.mark.parametrize('kind', ['LinearAttention', 'SoftmaxAttention'])
def test_matches_masked_attention_over_all_tokens(pattern, window, kind):
    kwargs = dict(shifts=[dict(mode='tsm', divisor=4)])
    if kind == 'LinearAttention':
        kwargs['fixation'] = {}
        kwargs['attention'] = dict(type=kind, offset='auto')
    else:
        kwargs['attention'] = dict(type=kind)
    module = _module(pattern=pattern, window_frames=window, **kwargs)
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    want = _by_hand(module, x, pattern, window)
    assert torch.allclose(module(x), want, atol=1e-10)


@pytest.mark.parametrize('pattern', ['time', 'space', 'joint'])
@pytest.mark.parametrize('across_heads', [False, True])
def test_fixation_first_shifts_reweighted_keys(pattern, across_heads):
    module = _module(
        pattern=pattern, fixation=dict(across_heads=across_heads),
        shifts=[dict(mode='tsm', divisor=4), dict(mode='cross', divisor=8)],
        fixation_first=True)
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    q, k, v = (y.unflatten(-1, (3, 4)) for y in module.qkv(x).chunk(3, -1))
    q, k = (feature_map(y, 'relu', 4**-0.5) for y in (q, k))
    q, k = module.fixation(q, k, v)
    for shift in module.shifts:
        k, v = (naive_neighbor_shift(y.flatten(-2), shift.plan).unflatten(
            -1, (3, 4)) for y in (k, v))
    q, k, v = (y.flatten(1, 3).transpose(1, 2) for y in (q, k, v))
    scores = q @ k.mT * _neighbors(pattern, None)
    y = scores @ v / (scores.sum(-1, keepdim=True) + 1e-6)
    want = module.proj(y.transpose(1, 2).flatten(2).unflatten(1, GRID))
    assert torch.allclose(module(x), want, atol=1e-10)
    module.fixation_first = False
    assert not torch.allclose(module(x), want, atol=1e-3)


def test_can_be_traced_and_saved(tmp_path):
    module, x = _module(fixation={}).float().eval(), torch.randn(2, *GRID, 12)
    with torch.no_grad():
        torch.jit.trace(module, x).save(tmp_path / 'traced.pt')
        loaded = torch.jit.load(tmp_path / 'traced.pt')
        assert torch.allclose(loaded(x), module(x), atol=1e-5)


def test_dropout_acts_in_training_only():
    for options in (
            dict(attention=dict(type='LinearAttention', dropout=0.5)),
            dict(attention=dict(type='SoftmaxAttention', dropout=0.5)),
            dict(dropout=0.5)):
        module = _module(**options)
        x = torch.randn(2, *GRID, 12, dtype=torch.float64)
        assert not torch.equal(module(x), module(x))
        module.eval()
        assert torch.equal(module(x), module(x))


@pytest.mark.parametrize('kwargs, message', [
    (dict(pattern='window'), "window_frames.*got None with 'window'"),
    (dict(pattern='time', window_frames=2),
     "window_frames.*got 2 with 'time'"),
    (dict(fixation_first=True), 'fixation_first=True.*fixation=None'),
    (dict(fixation_first=True, fixation={}), r'shifts=\[\]'),
])
def test_rejects(kwargs, message):
    with pytest.raises(Exception, match=message):
        _module(**kwargs)


def test_rejects_indivisible_channels():
    with pytest.raises(ValueError, match='embed_dims=10.*num_heads=3'):
        VideoSelfAttention(10, 3, dict(type='LinearAttention'), GRID)


@pytest.mark.parametrize('kwargs, message', [
    (dict(pattern='window', window_frames=9),
     'window_frames=9 exceeds .* 4 frames'),
    (dict(shifts=[dict(mode='tsm', divisor=4, segment_frames=3)]),
     'clip of 4 frames.*segment_frames=3'),
])
def test_rejects_unsuitable_clips(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _module(**kwargs)(torch.randn(1, *GRID, 12, dtype=torch.float64))
