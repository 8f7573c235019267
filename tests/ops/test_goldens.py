# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Outputs of the released code for attentions and shifts, and shift plans."""
import json

import pytest
import torch
from helpers import relative

from mmvidattn import ops
from mmvidattn.ops.leap import leap_pair, leap_step


def _linear(kind):
    return lambda case, q, k, v: dict(out=ops.linear_attention(
        ops.feature_map(q, kind), ops.feature_map(k, kind), v))


def _cosformer(case, q, k, v):
    return {name: ops.cosformer_attention(q.relu(), k.relu(), v, order=order)
            for name, order in (('out', 'right'), ('out_left', 'left'))}


def _performer(case, q, k, v):
    W = case['W'].to(q)
    return dict(q_prime=ops.performer_features(q, W, is_query=True),
                k_prime=ops.performer_features(k, W, is_query=False),
                out=ops.performer_attention(q, k, v, W))


def _linformer(case, q, k, v):
    x = case['x'].unflatten(-1, (3, 16)).to(q)
    return dict(out=ops.linformer_attention(
        x, x, x, case['E'].to(q), case['Fm'].to(q)))


# Outputs [B, N, G, D] by name.
CASES = dict(
    linear_relu=_linear('relu'), linear_elu1=_linear('elu+1'),
    softmax=lambda case, *qkv: dict(out=ops.softmax_attention(*qkv)),
    cosformer=_cosformer, performer_favor=_performer,
    linformer_share0=_linformer)
DTYPES = pytest.mark.parametrize('dtype, tolerance', [
    (torch.float64, 1e-10), (torch.float32, 1e-5)])


def _qkv(G, dtype):
    return [G[name].transpose(1, 2).to(dtype) for name in 'qkv']


@DTYPES
@pytest.mark.parametrize('name', CASES)
def test_attention(golden, name, dtype, tolerance):
    G = golden('linear/golden_attn.pt')
    for key, y in CASES[name](G[name], *_qkv(G, dtype)).items():
        assert relative(y.transpose(1, 2), G[name][key]) < tolerance, key


@pytest.mark.parametrize('kind, key', [('relu', 'relu_eps'),
                                       ('elu+1', 'elu1')])
def test_linear_attention_with_negative_keys(golden, kind, key):
    D = golden('linear/golden_attn.pt')['degenerate']
    y = _linear(kind)(D, *_qkv(D, torch.float64))['out']
    assert torch.allclose(y.transpose(1, 2), D[key], rtol=0, atol=1e-12)


@pytest.mark.parametrize('name', [
    'orthoformer_lvt', 'orthoformer_motionformer_shared1'])
@DTYPES
def test_orthoformer(golden, name, dtype, tolerance):
    """Both forms of the released code, with its landmarks."""
    G = golden('linear/golden_attn.pt')
    g = G[name]
    q, k, v = (G[x].transpose(1, 2).to(dtype) for x in 'qkv')
    chosen = ops.orthogonal_landmarks(
        q, g['num_landmarks'], g['first_index'].view(2, 3))
    landmarks = torch.take_along_dim(q, chosen.unsqueeze(-1), dim=1)
    scaled = landmarks.transpose(1, 2).flatten(0, 1) * 16**-0.25
    assert relative(scaled, g['landmarks_scaled']) < tolerance
    if 'num_frames' in g:
        # In Motionformer, landmarks attend to each frame separately.
        frames = zip(*(x.chunk(g['num_frames'], dim=1) for x in (k, v)))
        y = torch.stack([ops.orthoformer_attention(q, *kv, landmarks)
                         for kv in frames], dim=2)
    else:
        y = ops.orthoformer_attention(q, k, v, landmarks)
    # [B, N, (F, ) G, D] to [B, G, N, (F, ) D].
    y = y.movedim(-2, 1)
    assert y.shape == g['out'].shape
    assert relative(y, g['out']) < tolerance


def test_leap_pairs(shared_dir):
    path = shared_dir / 'goldens/laps/leap_index.json'
    tables = json.loads(path.read_text())
    # Every level of 8, 16, 32 and 64 frames.
    assert len(tables) == 3 + 4 + 5 + 6
    for name, table in tables.items():
        T, level = (int(part[1:]) for part in name.split('_'))
        pairs = leap_pair(torch.arange(T).view(1, T, 1), level)
        assert pairs.T.tolist() == [table['A'], table['B']]
        assert leap_step(T, level) == table['S']
        # The released code orders all first frames before all second ones.
        assert pairs.T.flatten()[table['reverse']].tolist() == list(range(T))


@pytest.mark.parametrize('mode, kwargs, folds', [
    ('tsm', dict(divisor=4), [128] * 2),
    ('window', dict(alpha=.5, size=4), [32] * 8),
    ('cross', dict(alpha=.5, size=4), [16] * 16),
    ('cross', dict(divisor=8, size=4), [64] * 4),
    ('square', dict(alpha=.5, size=1), [32] * 8),
    ('square', dict(alpha=.5, size=2), [10] * 24),
    ('eight', dict(), [32] * 8),
    ('eight', dict(size=4), [3] * 8)])
def test_folds_of_the_paper_at_512_channels(mode, kwargs, folds):
    plan = ops.shift_plan(mode, 512, **kwargs)
    assert [f.stop - f.start for f in plan] == folds
    released = 'alpha' not in kwargs
    assert plan[0].start == (0 if released else 256)


@pytest.mark.parametrize('alpha, channels, folds', [
    # In floating point, (1 - 0.9) * 20 is less than 2.
    (.9, 20, [(18, 19), (19, 20)]),
    (.7, 20, [(14, 17), (17, 20)]),
    # Fractions of a channel are not shifted.
    (.5, 7, [(4, 5), (5, 6)]), (.6, 7, [(5, 6), (6, 7)]), (.9, 7, [])])
def test_rounds_the_shared_channels_down(alpha, channels, folds):
    plan = ops.shift_plan('window', channels, alpha=alpha)
    assert [fold[:2] for fold in plan] == folds


def test_golden_released_shifts(golden):
    G = golden('linear/golden_attn.pt')
    for divisor in (4, 8):
        g = G[f'tshift_div{divisor}']
        x, out = (
            g[key].unflatten(0, (-1, 6)).transpose(2, 3).flatten(3)
            .unflatten(2, (5, 5)) for key in ('x', 'out'))
        plan = ops.shift_plan('tsm', 32, divisor=divisor)
        assert torch.equal(ops.neighbor_shift(x, plan), out)
    for size in (1, 2):
        for mode, kwargs in (('eight', {}), ('cross', dict(divisor=8))):
            g = G[f'sshift_s{size}_eight{int(mode == "eight")}']
            x, out = (
                g[key].unflatten(0, (-1, 5, 5)).permute(0, 4, 1, 2, 3, 5)
                .flatten(4) for key in ('x', 'out'))
            plan = ops.shift_plan(mode, 32, size=size, **kwargs)
            # 32 channels are too few for 24 neighbors.
            assert bool(plan) == ((size, mode) != (2, 'eight'))
            assert torch.equal(ops.neighbor_shift(x, plan), out)


def test_golden_windows_of_the_paper(golden):
    G = golden('linear/golden_na_spec.pt')
    for name, (mode, size) in dict(
            tau2=('window', 2), xi2=('cross', 2), square1=('square',
                                                           1)).items():
        for boundary in ('zero', 'self'):
            plan = ops.shift_plan(
                mode, 32, size=size, alpha=.5, boundary=boundary)
            assert torch.equal(
                ops.neighbor_shift(G['x'], plan), G[f'{name}_{boundary}'])
