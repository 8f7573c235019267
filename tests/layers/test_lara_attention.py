# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.layers import LARAAttention, VideoSelfAttention
from mmvidattn.ops.lara import (
    WEIGHTINGS,
    naive_landmark_pool,
    naive_lara_attention,
)

GRID = (4, 3, 5)
# Pattern, window, and cells of queries and keys with 9 landmarks.
PATTERNS = [
    pytest.param('time', None, (4, ), (4, ), id='time'),
    pytest.param('space', None, (3, 3), (3, 3), id='space'),
    pytest.param('joint', None, (2, 2, 2), (2, 2, 2), id='joint'),
    pytest.param('window', 2, (3, 3), (1, 3, 3), id='window'),
]


def _module(pattern='joint', window=None, num_landmarks=9, **kwargs):
    torch.manual_seed(0)
    module = VideoSelfAttention(
        12,
        3,
        dict(type='LARAAttention', num_landmarks=num_landmarks, **kwargs),
        GRID,
        pattern=pattern,
        window_frames=window)
    for parameter in module.attention.parameters():
        torch.nn.init.normal_(parameter)
    return module.double()


def _captured(module, x):
    """Return the arguments and the result of the inner attention."""
    calls = []
    handle = module.attention.register_forward_hook(
        lambda _, args, y: calls.append((args, y)))
    module(x)
    handle.remove()
    (args, y), = calls
    return args, y


def _landmarks(x, shape, grid, generator, all_heads):
    """Compute landmarks [*, C, G, D] of tokens [*, N, G, D]."""
    y = torch.stack([
        naive_landmark_pool(tokens, shape, grid)
        for tokens in x.flatten(0, -4)
    ])
    if isinstance(generator, torch.nn.Sequential):
        linear, norm = generator
        z = y.flatten(-2) if all_heads else y
        z = z @ linear.weight.T + linear.bias
        z = z - z.mean(-1, keepdim=True)
        z = z / (z.square().mean(-1, keepdim=True) + 1e-5).sqrt()
        y = (z * norm.weight + norm.bias).reshape(y.shape)
    return y.view(*x.shape[:-3], *y.shape[1:])


def _by_hand(attention, args, query_grid, key_grid, noise=0.):
    q, k, v, query_shape, key_shape = args
    all_heads = attention.pooling == 'all-heads'
    query_landmarks = _landmarks(q, query_shape, query_grid,
                                 attention.q_generator, all_heads)
    key_landmarks = _landmarks(k, key_shape, key_grid, attention.k_generator,
                               all_heads)
    if attention.mix_keys:
        y = key_landmarks.transpose(-3, -2)
        scores = y @ y.mT / attention.head_dims**0.5
        key_landmarks = (scores.softmax(-1) @ y).transpose(-3, -2)
    return naive_lara_attention(
        q, k, v, query_landmarks, key_landmarks,
        query_landmarks + key_landmarks + noise, attention.weighting,
        attention.alpha)


@pytest.mark.parametrize('pattern, window, query_grid, key_grid', PATTERNS)
@pytest.mark.parametrize('kwargs', [
    pytest.param(dict(), id='per-head'),
    pytest.param(dict(pooling='all-heads', alpha=0.5), id='all-heads'),
    pytest.param(dict(pooling='no-param', weighting='mis-bh'), id='no-param'),
    pytest.param(dict(mix_keys=True, weighting='mis-biased'), id='mixed'),
])
def test_matches_naive_in_every_pattern(pattern, window, query_grid, key_grid,
                                        kwargs):
    module = _module(pattern, window, **kwargs).eval()
    x = torch.randn(2, *GRID, 12, dtype=torch.float64)
    args, y = _captured(module, x)
    want = _by_hand(module.attention, args, query_grid, key_grid)
    assert (y - want).norm() < 1e-10 * want.norm()


@pytest.mark.parametrize('weighting', WEIGHTINGS)
def test_training_draws_samples_around_the_landmarks(weighting):
    attention = _module(weighting=weighting).attention
    q, k, v = torch.randn(3, 2, 60, 3, 4, dtype=torch.float64).unbind(0)
    args = (q, k, v, GRID, GRID)
    torch.manual_seed(5)
    y = attention(*args)
    torch.manual_seed(5)
    noise = torch.randn(2, 8, 3, 4, dtype=torch.float64)
    want = _by_hand(attention, args, (2, 2, 2), (2, 2, 2), noise)
    assert (y - want).norm() < 1e-10 * want.norm()
    assert not torch.equal(attention(*args), y)
    attention.eval()
    assert torch.equal(attention(*args), attention(*args))


@pytest.mark.parametrize('kwargs, message', [
    (dict(pooling='light'), "'per-head', 'all-heads', 'no-param'.*'light'"),
    (dict(weighting='opt'), "'mis-opt', 'mis-bh', 'mis-biased'.*'opt'"),
    (dict(num_landmarks=50), 'square.*got 50'),
    (dict(num_landmarks=0), 'num_landmarks.*got 0'),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        LARAAttention(4, 3, (17, 17), **kwargs)


@pytest.mark.parametrize('name, kwargs', [
    ('lara_pool_mis-opt', dict()),
    ('lara_pool_mis-bh', dict(weighting='mis-bh')),
    ('lara_no-param-pool_mis-opt', dict(pooling='no-param')),
])
@pytest.mark.parametrize('dtype, tolerance', [
    pytest.param(torch.float64, 1e-10, id='fp64'),
    pytest.param(torch.float32, 1e-5, id='fp32')])
def test_golden_attention(golden, name, kwargs, dtype, tolerance):
    """Outputs of the released code in evaluation, for a 2D grid of tokens."""
    g = golden('linear/golden_attn.pt')[name]
    names = {
        f'{x}_bar_gen.{released}': f'attention.{x}_generator.{ours}'
        for x in 'qk' for released, ours in ((2, 0), (3, 1))
    }
    state_dict = {}
    for key, value in g['params'].items():
        module, _, kind = key.rpartition('.')
        state_dict[f'{names.get(module, module)}.{kind}'] = value
    module = VideoSelfAttention(
        48,
        3,
        dict(type='LARAAttention', num_landmarks=g['num_landmarks'],
             **kwargs), (1, 6, 6),
        pattern='space').to(dtype).eval()
    module.load_state_dict(state_dict)
    y = module(g['x'].unsqueeze(1).to(dtype)).squeeze(1)
    assert (y.double() - g['out']).norm() < tolerance * g['out'].norm()
