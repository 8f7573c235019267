# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import neighbor_shift, shift_plan
from mmvidattn.ops.shift import naive_neighbor_shift

PLANS = {
    'tsm-4': dict(mode='tsm', divisor=4),
    'tsm-8-size2': dict(mode='tsm', divisor=8, size=2),
    'tsm-3-leftover': dict(mode='tsm', divisor=3),
    'window-2': dict(mode='window', alpha=0.5, size=2),
    'cross-released': dict(mode='cross', divisor=8, size=2),
    'cross-paper': dict(mode='cross', alpha=0.5, size=2),
    'cross-beyond-grid': dict(mode='cross', divisor=8, size=9),
    'square-1': dict(mode='square', alpha=0.5),
    'eight': dict(mode='eight'),
    'eight-size2': dict(mode='eight', size=2),
}


@pytest.mark.parametrize('options', PLANS.values(), ids=PLANS)
@pytest.mark.parametrize('boundary', [None, 'zero', 'replicate', 'self'])
def test_matches_naive(options, boundary):
    # As many as all neighbors of 'eight' take a share of.
    C = 48
    x = torch.randn(2, 5, 4, 3, C, dtype=torch.float64, requires_grad=True)
    plan = shift_plan(channels=C, boundary=boundary, **options)
    assert plan
    weight = torch.randn_like(x)
    y, y_ref = neighbor_shift(x, plan), naive_neighbor_shift(x, plan)
    assert torch.equal(y, y_ref)
    grad, grad_ref = (
        torch.autograd.grad((out * weight).sum(), x)[0] for out in (y, y_ref))
    assert torch.allclose(grad, grad_ref, atol=1e-14)


def test_keys_and_values_side_by_side_shift_alike():
    x = torch.randn(1, 4, 3, 3, 2, 16)
    plan = shift_plan('eight', 16)
    y = neighbor_shift(x, plan)
    for i in range(2):
        assert torch.equal(y[..., i, :], neighbor_shift(x[..., i, :], plan))


@pytest.mark.parametrize('mode, kwargs, folds', [
    ('tsm', dict(divisor=4), [128] * 2),
    ('tsm', dict(divisor=8), [64] * 2),
    ('window', dict(alpha=.5, size=4), [32] * 8),
    ('window', dict(alpha=.5, size=8), [16] * 16),
    ('cross', dict(alpha=.5, size=1), [64] * 4),
    ('cross', dict(alpha=.5, size=4), [16] * 16),
    ('cross', dict(divisor=8, size=4), [64] * 4),
    ('square', dict(alpha=.5, size=1), [32] * 8),
    ('square', dict(alpha=.5, size=2), [10] * 24),
    ('eight', dict(), [32] * 8),
    ('eight', dict(size=2), [10] * 24),
    ('eight', dict(size=4), [3] * 8),
])
def test_folds_of_the_paper_at_512_channels(mode, kwargs, folds):
    plan = shift_plan(mode, 512, **kwargs)
    assert [f.stop - f.start for f in plan] == folds
    released = 'alpha' not in kwargs
    assert plan[0].start == (0 if released else 256)


@pytest.mark.parametrize('mode, options, offsets', [
    ('tsm', dict(divisor=8, size=2), [(2, 0, 0), (-2, 0, 0)]),
    ('window', dict(alpha=.5, size=2),
     [(-2, 0, 0), (-1, 0, 0), (1, 0, 0), (2, 0, 0)]),
    ('cross', dict(alpha=.5, size=2),
     [(0, 0, -1), (0, 0, 1), (0, -1, 0), (0, 1, 0),
      (0, 0, -2), (0, 0, 2), (0, -2, 0), (0, 2, 0)]),
    ('cross', dict(divisor=8, size=2),
     [(0, 2, 0), (0, -2, 0), (0, 0, 2), (0, 0, -2)]),
    ('square', dict(alpha=.5),
     [(0, -1, -1), (0, -1, 0), (0, -1, 1), (0, 0, -1),
      (0, 0, 1), (0, 1, -1), (0, 1, 0), (0, 1, 1)]),
])
def test_neighbors_of_each_mode(mode, options, offsets):
    assert [f.offset for f in shift_plan(mode, 512, **options)] == offsets


# Rows and columns from a token to the one that a fold is read from.
EIGHT_OF_SIZE_2 = [
    (2, 0), (-2, 0), (0, 2), (0, -2), (-2, -2), (2, 2), (-2, 2), (2, -2),
    (-2, -1), (-2, 1), (-1, -2), (1, -2), (2, -1), (2, 1), (-1, 2), (1, 2),
    (1, 0), (-1, 0), (0, 1), (0, -1), (-1, -1), (1, 1), (-1, 1), (1, -1)]


@pytest.mark.parametrize('size, offsets', [
    (1, [(y / 2, x / 2) for y, x in EIGHT_OF_SIZE_2[:8]]),
    (2, EIGHT_OF_SIZE_2)])
def test_released_neighbors_at_512_channels(size, offsets):
    """Written out for linear_ff's width; what is left over stays."""
    x = torch.randn(1, 2, 5, 5, 512)
    want, fold = x.clone(), 512 // (2 * ((2 * size + 1)**2 - 1))
    for i, (dy, dx) in enumerate(offsets):
        channels = slice(i * fold, (i + 1) * fold)
        for y in range(5):
            for z in range(5):
                there = int(y + dy), int(z + dx)
                if all(0 <= n < 5 for n in there):
                    want[:, :, y, z, channels] = x[
                        :, :, there[0], there[1], channels]
                elif i < 4:
                    want[:, :, y, z, channels] = 0
    got = neighbor_shift(x, shift_plan('eight', 512, size=size))
    assert torch.equal(got, want)
    moved = (got != x).any(dim=3).any(dim=2).any(dim=1)[0]
    assert moved.sum() == len(offsets) * fold


@pytest.mark.parametrize('mode, kwargs, message', [
    ('roll', dict(divisor=4), "must be one of.*'tsm'.*got 'roll'"),
    ('tsm', dict(), 'either divisor or alpha'),
    ('tsm', dict(divisor=4, alpha=.5), 'either divisor or alpha'),
    ('tsm', dict(alpha=.5), "'tsm' is not defined by alpha"),
    ('tsm', dict(divisor=1), 'at least'),
    ('window', dict(alpha=1.5), r'alpha must be in \[0, 1\], got 1.5'),
    ('eight', dict(size=0), 'at least 1, got 0'),
    ('eight', dict(boundary='wrap'), "'replicate', 'self'.*got 'wrap'"),
])
def test_rejects(mode, kwargs, message):
    with pytest.raises(ValueError, match=message):
        shift_plan(mode, 32, **kwargs)


def test_golden_released_shifts(golden):
    G = golden('linear/golden_attn.pt')
    for divisor in (4, 8):
        g = G[f'tshift_div{divisor}']
        x, out = (
            g[key].unflatten(0, (-1, 6)).transpose(2, 3).flatten(3)
            .unflatten(2, (5, 5)) for key in ('x', 'out'))
        plan = shift_plan('tsm', 32, divisor=divisor)
        assert torch.equal(neighbor_shift(x, plan), out)
    for size in (1, 2):
        for mode, kwargs in (('eight', {}), ('cross', dict(divisor=8))):
            g = G[f'sshift_s{size}_eight{int(mode == "eight")}']
            x, out = (
                g[key].unflatten(0, (-1, 5, 5)).permute(0, 4, 1, 2, 3, 5)
                .flatten(4) for key in ('x', 'out'))
            plan = shift_plan(mode, 32, size=size, **kwargs)
            # 32 channels are too few for a share of each of 24 neighbors.
            assert bool(plan) == ((size, mode) != (2, 'eight'))
            assert torch.equal(neighbor_shift(x, plan), out)


def test_golden_windows_of_the_paper(golden):
    G = golden('linear/golden_na_spec.pt')
    for name, (mode, size) in dict(
            tau2=('window', 2), xi2=('cross', 2), square1=('square',
                                                           1)).items():
        for boundary in ('zero', 'replicate', 'self'):
            plan = shift_plan(
                mode, 32, size=size, alpha=.5, boundary=boundary)
            assert torch.equal(
                neighbor_shift(G['x'], plan), G[f'{name}_{boundary}'])


def test_least_divisor_reads_every_neighbor_once():
    plan = shift_plan('tsm', 6, divisor=2)
    assert [(fold.start, fold.stop) for fold in plan] == [(0, 3), (3, 6)]
    with pytest.raises(ValueError, match='at least that, got 1'):
        shift_plan('tsm', 6, divisor=1)
