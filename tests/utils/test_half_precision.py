# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""bfloat16 runs only where the processor has units for it."""
import pytest
import torch
from mmengine.config import Config

from mmvidattn import get_model
from mmvidattn.apis import build_runner
from mmvidattn.online import StreamSession
from mmvidattn.utils import half_precision


@pytest.mark.parametrize('device, has_units, variable, is_fast', [
    ('cpu', False, '', False), ('cpu', True, '', True),
    ('cpu', False, 'force', True), ('cuda', False, '', True)])
def test_computes_where_it_is_fast_and_reports_it_once(
        monkeypatch, capsys, device, has_units, variable, is_fast):
    half_precision._report.cache_clear()
    monkeypatch.setenv(half_precision.VARIABLE, variable)
    monkeypatch.setattr(half_precision, 'has_bfloat16_instructions',
                        lambda: has_units)
    monkeypatch.setattr(build_runner, 'get_device', lambda: device)
    cfg = Config(dict(
        optim_wrapper=dict(type='AmpOptimWrapper', dtype='bfloat16',
                           loss_scale='dynamic', clip_grad=dict(max_norm=1.)),
        val_cfg=dict(type='ValLoop', fp16=True), test_cfg=None))
    before = cfg.to_dict()
    if not is_fast:
        assert build_runner.drop_slow_bfloat16(cfg) == [
            'optim_wrapper (AmpOptimWrapper)', 'val_cfg.fp16']
        before.update(optim_wrapper=dict(
            type='OptimWrapper', clip_grad=dict(max_norm=1.)),
            val_cfg=dict(type='ValLoop', fp16=False))
    assert build_runner.drop_slow_bfloat16(cfg) == []
    assert cfg.to_dict() == before
    if device == 'cuda':
        return
    model = get_model('testra_tiny_synthetic').bfloat16()
    for _ in range(2):
        assert StreamSession(model, 1).step.example.dtype == (
            torch.bfloat16 if is_fast else torch.float32)
    assert next(model.parameters()).dtype == torch.bfloat16
    assert capsys.readouterr().err.count('MMVIDATTN_BFLOAT16=force') == (
        not is_fast)
    monkeypatch.setenv(half_precision.VARIABLE, 'yes')
    with pytest.raises(ValueError, match="MMVIDATTN_BFLOAT16.*'yes'"):
        StreamSession(model, 1)
