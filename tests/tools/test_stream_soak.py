# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from tools.soak import stream as soak

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings('ignore:frame .* of a stream')]


@pytest.mark.parametrize('kernel, dtype, steps', [
    ('window', 'float32', 300), ('smoothing', 'float16', 300)])
def test_short_soak(kernel, dtype, steps):
    results = list(soak.soak(kernel, steps, getattr(torch, dtype), checks=3))
    assert [r['steps'] for r in results] == [
        steps // 3, 2 * steps // 3, steps]
    assert soak.failures_of(results, kernel, dtype) == []


@pytest.mark.parametrize('decay, silence', [(1., 1.), (0.999, 0.3)])
def test_short_soak_of_constant_streams(monkeypatch, decay, silence):
    # Silence starts at a block.
    monkeypatch.setattr(soak, 'BLOCK', 100)
    results = list(soak.soak('smoothing', 300, checks=3, decay=decay,
                             silence=silence))
    assert soak.failures_of(results, 'smoothing', 'float32') == []
    assert max(r['stored_error'] for r in results) < 1e-6


def test_lists_failures():
    good = dict(steps=10, error=1e-7, stored_error=1e-7, not_finite=0,
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
    # In half precision, only the error from stored samples counts.
    assert soak.failures_of([coarse], 'smoothing', 'float16') == []
    assert soak.failures_of([dict(good, stored_error=5e-4)], 'smoothing',
                            'float16') == ['stored_error reached 5.0e-04']
