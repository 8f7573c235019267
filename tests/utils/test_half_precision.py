# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""bfloat16 runs only where the processor has units for it."""
import pytest
import torch
from mmengine.config import Config

from mmvidattn import get_model
from mmvidattn.apis import build_runner
from mmvidattn.online import StreamSession
from mmvidattn.utils import half_precision


@pytest.fixture
def units(monkeypatch):
    """Choose if this processor has bfloat16 units, and the variable."""
    half_precision._report.cache_clear()

    def choose(has_units, variable=''):
        monkeypatch.setenv(half_precision.VARIABLE, variable)
        monkeypatch.setattr(half_precision, 'has_bfloat16_instructions',
                            lambda: has_units)

    return choose


@pytest.mark.parametrize('has_units, variable, dtype', [
    (False, '', torch.float32), (True, '', torch.bfloat16),
    (False, 'force', torch.bfloat16)])
def test_stream_computes_where_it_is_fast_and_reports_it_once(
        units, capsys, has_units, variable, dtype):
    units(has_units, variable)
    model = get_model('testra_tiny_synthetic').bfloat16()
    for _ in range(2):
        assert StreamSession(model, 1).step.example.dtype == dtype
    assert next(model.parameters()).dtype == torch.bfloat16
    assert capsys.readouterr().err.count('MMVIDATTN_BFLOAT16=force') == (
        dtype == torch.float32)
    units(has_units, 'yes')
    with pytest.raises(ValueError, match="MMVIDATTN_BFLOAT16.*'yes'"):
        StreamSession(model, 1)


@pytest.mark.parametrize('device, has_units, changes', [
    ('cpu', False, ['optim_wrapper (AmpOptimWrapper)', 'val_cfg.fp16']),
    ('cuda', False, []), ('cpu', True, [])])
def test_config_computes_where_it_is_fast(units, monkeypatch, device,
                                          has_units, changes):
    monkeypatch.setattr(build_runner, 'get_device', lambda: device)
    units(has_units)
    cfg = Config(dict(
        optim_wrapper=dict(type='AmpOptimWrapper', dtype='bfloat16',
                           loss_scale='dynamic', clip_grad=dict(max_norm=1.)),
        val_cfg=dict(type='ValLoop', fp16=True), test_cfg=None))
    before = cfg.to_dict()
    assert build_runner.drop_slow_bfloat16(cfg) == changes
    if changes:
        before.update(optim_wrapper=dict(
            type='OptimWrapper', clip_grad=dict(max_norm=1.)),
            val_cfg=dict(type='ValLoop', fp16=False))
        assert build_runner.drop_slow_bfloat16(cfg) == []
    assert cfg.to_dict() == before
