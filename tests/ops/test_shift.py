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
}


@pytest.mark.parametrize('options', PLANS.values(), ids=PLANS)
@pytest.mark.parametrize('boundary', [None, 'zero', 'replicate', 'self'])
def test_matches_naive(options, boundary):
    x = torch.randn(2, 5, 4, 3, 32, dtype=torch.float64, requires_grad=True)
    plan = shift_plan(channels=32, boundary=boundary, **options)
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
])
def test_folds_of_the_paper_at_512_channels(mode, kwargs, folds):
    plan = shift_plan(mode, 512, **kwargs)
    assert [f.stop - f.start for f in plan] == folds
    released = 'alpha' not in kwargs
    assert plan[0].start == (0 if released else 256)


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
