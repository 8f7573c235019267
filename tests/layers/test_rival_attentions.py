# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""cosFormer, Performer and Linformer inside VideoSelfAttention."""
import pytest
import torch

from mmvidattn.layers import (
    CosFormerAttention,
    LinformerAttention,
    PerformerAttention,
    VideoSelfAttention,
)
from mmvidattn.ops.cosformer import naive_cosformer_attention
from mmvidattn.ops.linformer import naive_linformer_attention
from mmvidattn.ops.performer import naive_performer_attention

GRID = T, H, W = 4, 3, 5
PATTERNS = [('time', None), ('space', None), ('joint', None), ('window', 3)]
CONFIGS = dict(
    cosformer=dict(type='CosFormerAttention'),
    favor=dict(type='PerformerAttention', num_features=9),
    relu=dict(type='PerformerAttention', num_features=3, kind='relu'),
    linformer=dict(type='LinformerAttention', num_projections=6),
    linformer_shared=dict(
        type='LinformerAttention', num_projections=6, share_projection=True),
)
# Other files compare the added attentions with their references.
ALL_CONFIGS = dict(
    CONFIGS,
    lara=dict(type='LARAAttention', num_landmarks=9),
    lara_all_heads=dict(type='LARAAttention', num_landmarks=9,
                        pooling='all-heads'),
    orthoformer=dict(type='OrthoformerAttention', num_landmarks=60))
every_config = pytest.mark.parametrize('name', CONFIGS)
every_pattern = pytest.mark.parametrize('pattern, window', PATTERNS)


def _module(name, pattern='joint', window=None, **kwargs):
    torch.manual_seed(0)
    return VideoSelfAttention(
        12,
        3,
        ALL_CONFIGS[name],
        GRID,
        pattern=pattern,
        window_frames=window,
        **kwargs).double()


def _clip(*shape):
    gen = torch.Generator().manual_seed(1)
    return torch.randn(*shape, 12, generator=gen, dtype=torch.float64)


def _sequences(pattern, window):
    """Return indices of the queries and keys of each sequence, in [T, H, W].
    """
    index = torch.arange(T * H * W).view(GRID)
    if pattern == 'time':
        return [(i, i) for i in index.flatten(1).unbind(1)]
    if pattern == 'space':
        return [(i, i) for i in index.flatten(1).unbind(0)]
    if pattern == 'joint':
        return [(index.flatten(), index.flatten())]
    first = [min(max(t - window // 2, 0), T - window) for t in range(T)]
    return [(index[t].flatten(), index[f:f + window].flatten())
            for t, f in enumerate(first)]


def _naive(attention, q, k, v):
    if isinstance(attention, CosFormerAttention):
        return naive_cosformer_attention(q, k, v)
    if isinstance(attention, PerformerAttention):
        return naive_performer_attention(q, k, v, attention.projection,
                                         attention.kind)
    E, F = attention.key_projection, attention.value_projection
    return naive_linformer_attention(q, k, v, E, E if F is None else F)


@every_config
@every_pattern
@pytest.mark.parametrize('fixation', [None, {}], ids=['plain', 'fixed'])
def test_matches_naive_by_sequence(name, pattern, window, fixation):
    module = _module(name, pattern, window, fixation=fixation)
    x = _clip(2, *GRID)
    q, k, v = (
        y.flatten(1, 3).unflatten(-1, (3, 4))
        for y in module.qkv(x).chunk(3, -1))
    if name == 'cosformer':
        q, k = q.relu(), k.relu()
    if fixation is not None:
        q, k = module.fixation(q, k, v)
    want = torch.empty_like(q)
    for queries, keys in _sequences(pattern, window):
        want[:, queries] = _naive(module.attention, q[:, queries], k[:, keys],
                                  v[:, keys])
    want = module.proj(want.flatten(2).unflatten(1, GRID))
    assert torch.allclose(module(x), want, atol=1e-11)


@pytest.mark.parametrize('name', ALL_CONFIGS)
@every_pattern
def test_every_parameter_gets_a_gradient(name, pattern, window):
    module = _module(
        name,
        pattern,
        window,
        fixation={},
        shifts=[dict(mode='tsm', divisor=4)])
    x = _clip(1, *GRID).requires_grad_()
    module(x).square().sum().backward()
    for key, p in [('x', x), *module.named_parameters()]:
        assert p.grad is not None, key
        assert p.grad.isfinite().all() and p.grad.abs().max() > 0, key


@pytest.mark.parametrize('name', ['lara', 'orthoformer'])
def test_accepts_clips_of_other_sizes(name):
    for pattern in 'time', 'space', 'joint':
        module = _module(name, pattern)
        for grid in (1, 1, 1), (1, 2, 5), (13, 7, 2):
            y = module(_clip(1, *grid))
            assert y.shape == (1, *grid, 12) and y.isfinite().all()


@pytest.mark.parametrize('name', ALL_CONFIGS)
@pytest.mark.parametrize('dtype, tolerance', [(torch.float16, 1e-2),
                                              (torch.bfloat16, 6e-2)])
def test_half_precision_is_close_to_float64(name, dtype, tolerance):
    module = _module(name, 'space').eval()
    x = _clip(2, *GRID)
    want = module(x)
    y = module.to(dtype)(x.to(dtype))
    assert y.dtype == dtype
    assert (y - want).norm() < tolerance * want.norm()


def test_performer_projection_is_a_buffer_that_depends_on_the_seed():
    a = PerformerAttention(4, 3, GRID, seed=1)
    assert a.projection.shape == (64, 4)
    assert not list(a.parameters())
    assert list(a.state_dict()) == ['projection']
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    same = PerformerAttention(4, 3, GRID, seed=1)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(a.projection, same.projection)
    other = PerformerAttention(4, 3, GRID, seed=2)
    assert not torch.equal(a.projection, other.projection)
    first, second = (PerformerAttention(4, 3, GRID) for _ in range(2))
    assert not torch.equal(first.projection, second.projection)


def test_performer_does_not_redraw_its_projection():
    module = _module('favor').train()
    x = _clip(1, *GRID)
    before = module.attention.projection.clone()
    first = module(x)
    module(7 * x + 1)
    assert torch.equal(module(x), first)
    assert torch.equal(module.attention.projection, before)


@pytest.mark.parametrize('pattern, window, keys', [('time', None, T),
                                                   ('space', None, H * W),
                                                   ('joint', None, T * H * W),
                                                   ('window', 3, 3 * H * W)])
def test_linformer_has_a_row_for_each_key(pattern, window, keys):
    attention = _module('linformer', pattern, window).attention
    shapes = {key: p.shape for key, p in attention.named_parameters()}
    assert shapes == dict(
        key_projection=(keys, 6), value_projection=(keys, 6))
    attention = _module('linformer_shared', pattern, window).attention
    assert list(attention.state_dict()) == ['key_projection']


def test_linformer_initialization_is_uniform():
    torch.manual_seed(0)
    attention = LinformerAttention(4, 3, (30, 40))
    for projection in attention.parameters():
        assert projection.shape == (1200, 256)
        # U(-1/16, 1/16).
        assert 0.0624 < projection.abs().max() <= 0.0625
        assert projection.std().item() == pytest.approx(
            0.0625 / 3**0.5, rel=0.01)


def test_linformer_uses_the_first_rows_for_shorter_sequences():
    module = _module('linformer', 'space')
    short = _module('linformer', 'space')
    rows = 2 * W
    with torch.no_grad():
        for p in short.attention.parameters():
            p[rows:] = torch.nan
    x = _clip(1, T, 2, W)
    assert torch.equal(short(x), module(x))


def test_linformer_rejects_longer_sequences():
    module = _module('linformer', 'space')
    with pytest.raises(
            ValueError,
            match=r'for 15 keys \(3, 5\), got 20; .*num_frames.*'
            'img_size'):
        module(_clip(1, T, 4, W))
