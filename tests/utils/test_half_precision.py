# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""bfloat16 runs only where the processor has units for it."""
import pytest
import torch
from mmengine.config import Config
from mmengine.logging import MMLogger

from mmvidattn import get_model
from mmvidattn.apis import runner
from mmvidattn.online import StreamSession
from mmvidattn.utils import half_precision


@pytest.fixture
def units(monkeypatch):
    """Choose whether this processor has bfloat16 units, without override."""
    monkeypatch.delenv(half_precision.VARIABLE)
    half_precision._report_stream.cache_clear()

    def choose(value):
        monkeypatch.setattr(
            half_precision, 'has_bfloat16_units', lambda: value)

    return choose


@pytest.mark.parametrize(
    'machine, capability, isa, instructions, flags, expected', [
    ('x86_64', 'AVX512', '', True, '', True),
    ('x86_64', 'AVX512', '', False, 'avx512f', False),
    ('x86_64', 'AVX512', '', False, 'avx512f amx_bf16', True),
    ('x86_64', 'AVX512', 'AVX2', True, '', False),
    ('x86_64', 'AVX512', 'avx512_core', True, '', False),
    ('x86_64', 'AVX512', 'AVX512_CORE_BF16', True, '', True),
    ('x86_64', 'AVX2', '', True, 'avx512_bf16', False),
    ('aarch64', 'DEFAULT', '', True, '', True),
    ('aarch64', 'DEFAULT', '', False, '', False)])
def test_units_by_capability(monkeypatch, machine, capability, isa,
                             instructions, flags, expected):
    monkeypatch.setenv('ONEDNN_MAX_CPU_ISA', isa)
    monkeypatch.setattr(half_precision.platform, 'machine', lambda: machine)
    monkeypatch.setattr(torch.backends.cpu, 'get_cpu_capability',
                        lambda: capability)
    monkeypatch.setattr(half_precision, 'has_bfloat16_instructions',
                        lambda: instructions)
    monkeypatch.setattr(half_precision, 'cpuinfo', lambda key: flags)
    assert half_precision.has_bfloat16_units() == expected


def test_stream_runs_in_float32_and_reports_it_once(units, monkeypatch):
    lines = []
    monkeypatch.setattr(MMLogger, 'callHandlers', lambda self, record: (
        lines.append(record.getMessage())))
    units(False)
    model = get_model('testra_tiny_synthetic').bfloat16()
    features = {name: torch.randn(3, channels)
                for name, channels in model.backbone.in_channels.items()}
    scores = [StreamSession(model, 1).push(features)['action']
              for _ in range(2)]
    wide = StreamSession(
        get_model('testra_tiny_synthetic').bfloat16().float(), 1)
    assert scores[0].dtype == torch.float32
    assert scores[0].equal(scores[1])
    assert wide.push(features)['action'].dtype == torch.float32
    assert next(model.parameters()).dtype == torch.bfloat16
    line, = [line for line in lines if 'bfloat16' in line]
    assert 'float32' in line and 'MMVIDATTN_BFLOAT16=force' in line


@pytest.mark.parametrize('has_units, variable', [(True, ''),
                                                 (False, 'force')])
def test_stream_runs_in_bfloat16(units, monkeypatch, has_units, variable):
    units(has_units)
    monkeypatch.setenv(half_precision.VARIABLE, variable)
    model = get_model('testra_tiny_synthetic').bfloat16()
    assert half_precision.without_slow_bfloat16(model) is model
    assert StreamSession(model, 1).step.example.dtype == torch.bfloat16


def test_other_models_are_left_alone(units):
    units(False)
    for model in torch.nn.Linear(2, 2).half(), torch.nn.ReLU():
        assert half_precision.without_slow_bfloat16(model) is model
    assert not half_precision.is_bfloat16_slow('cuda')
    assert half_precision.is_bfloat16_slow('cpu')


def test_unknown_value_of_the_variable(monkeypatch):
    monkeypatch.setenv(half_precision.VARIABLE, 'yes')
    with pytest.raises(ValueError, match="MMVIDATTN_BFLOAT16.*'yes'"):
        half_precision.is_bfloat16_slow('cpu')


def amp_config():
    return Config(dict(
        optim_wrapper=dict(type='AmpOptimWrapper', dtype='bfloat16',
                           loss_scale='dynamic', clip_grad=dict(max_norm=1.)),
        val_cfg=dict(type='ValLoop', fp16=True), test_cfg=None))


def test_config_computes_in_float32(units, monkeypatch):
    monkeypatch.setattr(runner, 'get_device', lambda: 'cpu')
    units(False)
    cfg = amp_config()
    assert runner.drop_slow_bfloat16(cfg) == [
        'optim_wrapper (AmpOptimWrapper)', 'val_cfg.fp16']
    assert cfg.optim_wrapper == dict(type='OptimWrapper',
                                     clip_grad=dict(max_norm=1.))
    assert not cfg.val_cfg.fp16
    assert runner.drop_slow_bfloat16(cfg) == []


@pytest.mark.parametrize('device, has_units', [('cuda', False),
                                               ('cpu', True)])
def test_config_keeps_bfloat16(units, monkeypatch, device, has_units):
    monkeypatch.setattr(runner, 'get_device', lambda: device)
    units(has_units)
    cfg = amp_config()
    assert runner.drop_slow_bfloat16(cfg) == []
    assert cfg.to_dict() == amp_config().to_dict()
