# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.ops import neighbor_shift, shift_plan
from mmvidattn.ops.neighbor_shift import naive_neighbor_shift
from mmvidattn.ops.torch_private import any_export_sizes


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


@pytest.mark.parametrize('alpha, channels, shared', [
    # In floating point, (1 - 0.9) * 20 is less than 2.
    (.9, 20, 2), (.8, 20, 4), (.7, 20, 6),
    # Fractions of a channel are not shifted.
    (.5, 7, 3), (.75, 7, 1), (.6, 7, 2), (.9, 7, 0)])
def test_rounds_the_shared_channels_down(alpha, channels, shared):
    plan = shift_plan('window', channels, alpha=alpha)
    fold = shared // 2
    start = channels - shared
    assert [f[:2] for f in plan] == ([
        (start, start + fold), (start + fold, start + 2 * fold)]
        if fold else [])


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
            # 32 channels are too few for 24 neighbors.
            assert bool(plan) == ((size, mode) != (2, 'eight'))
            assert torch.equal(neighbor_shift(x, plan), out)


def test_golden_windows_of_the_paper(golden):
    G = golden('linear/golden_na_spec.pt')
    for name, (mode, size) in dict(
            tau2=('window', 2), xi2=('cross', 2), square1=('square',
                                                           1)).items():
        for boundary in ('zero', 'self'):
            plan = shift_plan(
                mode, 32, size=size, alpha=.5, boundary=boundary)
            assert torch.equal(
                neighbor_shift(G['x'], plan), G[f'{name}_{boundary}'])


def test_exported_shift_takes_any_batch_and_size():
    """An operator that checks for sizes of 1 would limit the batch."""
    plan = shift_plan('square', 32, alpha=.5, boundary='self')

    class Shift(torch.nn.Module):

        def forward(self, x):
            return neighbor_shift(x, plan)

    dynamic = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC}
    with any_export_sizes():
        program = torch.export.export(
            Shift(), (torch.randn(3, 4, 5, 5, 32), ),
            dynamic_shapes=(dynamic, )).module()
    for batch, rows in (1, 5), (2, 9):
        x = torch.randn(batch, 4, rows, 5, 32)
        assert torch.equal(program(x), naive_neighbor_shift(x, plan))
