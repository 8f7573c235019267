# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""bfloat16 runs only where the processor has units for it."""
import pytest
import torch
from mmengine.config import Config

from mmvidattn import get_model
from mmvidattn.apis import build_runner
from mmvidattn.online import StreamSession
from mmvidattn.utils import half_precision

AMP = dict(
    optim_wrapper=dict(type='AmpOptimWrapper', dtype='bfloat16',
                       loss_scale='dynamic', clip_grad=dict(max_norm=1.)),
    val_cfg=dict(type='ValLoop', fp16=True), test_cfg=None)


@pytest.fixture
def units(monkeypatch):
    """Choose whether this processor has bfloat16 units, without override."""
    monkeypatch.delenv(half_precision.VARIABLE)
    half_precision._report.cache_clear()

    def choose(value):
        monkeypatch.setattr(
            half_precision, 'has_bfloat16_units', lambda: value)

    return choose


@pytest.mark.parametrize(
    'machine, capability, isa, instructions, expected', [
        ('x86_64', 'AVX512', '', True, True),
        ('x86_64', 'AVX512', '', False, False),
        ('x86_64', 'AVX512', 'avx512_core', True, False),
        ('x86_64', 'AVX512', 'AVX512_CORE_BF16', True, True),
        ('x86_64', 'AVX2', '', True, False),
        ('aarch64', 'DEFAULT', '', True, True)])
def test_units_by_capability(monkeypatch, machine, capability, isa,
                             instructions, expected):
    monkeypatch.setenv('ONEDNN_MAX_CPU_ISA', isa)
    monkeypatch.setattr(half_precision.platform, 'machine', lambda: machine)
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability',
                        lambda: capability)
    monkeypatch.setattr(half_precision, 'has_bfloat16_instructions',
                        lambda: instructions)
    assert half_precision.has_bfloat16_units() == expected


@pytest.mark.parametrize('has_units, variable, dtype', [
    (False, '', torch.float32), (True, '', torch.bfloat16),
    (False, 'force', torch.bfloat16)])
def test_stream_computes_where_it_is_fast_and_reports_it_once(
        units, monkeypatch, capsys, has_units, variable, dtype):
    monkeypatch.setenv(half_precision.VARIABLE, variable)
    units(has_units)
    model = get_model('testra_tiny_synthetic').bfloat16()
    for _ in range(2):
        assert StreamSession(model, 1).step.example.dtype == dtype
    assert next(model.parameters()).dtype == torch.bfloat16
    assert capsys.readouterr().err.count('MMVIDATTN_BFLOAT16=force') == (
        dtype == torch.float32)


@pytest.mark.parametrize('device, has_units, changes', [
    ('cpu', False, ['optim_wrapper (AmpOptimWrapper)', 'val_cfg.fp16']),
    ('cuda', False, []), ('cpu', True, [])])
def test_config_computes_where_it_is_fast(units, monkeypatch, device,
                                          has_units, changes):
    monkeypatch.setattr(build_runner, 'get_device', lambda: device)
    units(has_units)
    cfg = Config(AMP)
    assert build_runner.drop_slow_bfloat16(cfg) == changes
    if not changes:
        assert cfg.to_dict() == AMP
        return
    assert cfg.optim_wrapper == dict(type='OptimWrapper',
                                     clip_grad=dict(max_norm=1.))
    assert not cfg.val_cfg.fp16
    assert build_runner.drop_slow_bfloat16(cfg) == []


def test_unknown_value_of_the_variable(monkeypatch):
    monkeypatch.setenv(half_precision.VARIABLE, 'yes')
    with pytest.raises(ValueError, match="MMVIDATTN_BFLOAT16.*'yes'"):
        half_precision.is_bfloat16_slow('cpu')
