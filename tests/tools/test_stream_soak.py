# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
from pathlib import Path

import pytest
import torch

TOOL = Path(__file__).resolve().parents[2] / 'tools/soak/stream.py'


@pytest.fixture(scope='module')
def soak():
    spec = importlib.util.spec_from_file_location('soak_stream', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings('ignore:frame .* of a stream')
@pytest.mark.parametrize('kernel, dtype, steps', [
    ('window', 'float32', 900), ('smoothing', 'float32', 900),
    ('window', 'bfloat16', 300), ('smoothing', 'float16', 300)])
def test_short_soak(soak, kernel, dtype, steps):
    results = list(soak.soak(kernel, steps, getattr(torch, dtype), checks=3))
    assert [r['steps'] for r in results] == [
        steps // 3, 2 * steps // 3, steps]
    assert soak.failures_of(results, kernel, dtype) == []


@pytest.mark.filterwarnings('ignore:frame .* of a stream')
@pytest.mark.parametrize('decay, silence', [(1., 1.), (0.999, 0.3)])
def test_short_soak_of_constant_streams(soak, monkeypatch, decay, silence):
    # Silence begins with a block.
    monkeypatch.setattr(soak, 'BLOCK', 100)
    results = list(soak.soak('smoothing', 300, checks=3, decay=decay,
                             silence=silence))
    assert soak.failures_of(results, 'smoothing', 'float32') == []
    assert max(r['own_error'] for r in results) < 1e-6


@pytest.mark.filterwarnings('ignore:frame .* of a stream')
def test_tells_what_goes_wrong(soak):
    good = dict(steps=10, error=1e-7, own_error=1e-7, not_finite=0,
                bad_frames=0, resident=2**30)
    bad = dict(good, error=float('nan'), not_finite=3, resident=2**31)
    assert soak.failures_of([good], 'window', 'float32') == []
    assert soak.failures_of([good, bad], 'window', 'float32') == [
        'error reached nan', '3 scores not finite',
        'memory grew by 1024 MiB']
    coarse = dict(good, error=5e-4)
    assert soak.failures_of([coarse], 'window', 'float32') == []
    assert soak.failures_of([coarse], 'smoothing', 'float32') == [
        'error reached 5.0e-04']
    # Rounded weights are others; what is made of them is not.
    assert soak.failures_of([coarse], 'smoothing', 'float16') == []
    assert soak.failures_of([dict(good, own_error=5e-4)], 'smoothing',
                            'float16') == ['own_error reached 5.0e-04']


def test_has_all_that_is_hard(soak):
    """Drift, spikes, silence and bad frames, the same at each call."""
    x = torch.cat([soak.block_of(n, 60_000, 'window', 0) for n in range(60)])
    again = soak.block_of(7, 60_000, 'window', 0)
    assert torch.equal(again.nan_to_num(), x[7000:8000].nan_to_num())
    assert 20 < (~x.isfinite().all(dim=1)).sum() < 120
    loud = (x == soak.LOUD).all(dim=1)
    assert 0 < loud.sum() < 30
    assert soak.block_of(40, 60_000, 'window', 0, 0.5).eq(0).all()
    assert soak.block_of(20, 60_000, 'window', 0, 0.5).ne(0).any()
    x = x[~loud]
    assert (x == 0).all(dim=1).sum() > 50
    score = x[:, 0].nan_to_num()
    assert score.max() > 300
    assert 118 < score[-1000:].median() < 122 and score[:1000].median() < 3
