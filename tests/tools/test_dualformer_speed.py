# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).resolve().parents[2] / 'tools/benchmark'


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location(
        'dualformer_speed_tool', FOLDER / 'dualformer_speed.py')
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    # As the real ones, but for a second each.
    arch = 8, (2, 2, 2, 2), (1, 1, 2, 2)
    tool.ARCHS['least'] = arch
    names = 'embed_dims', 'num_layers', 'num_heads'
    monkeypatch.setitem(tool.DualFormer.arch_zoo, 'least',
                        dict(zip(names, arch)))
    yield tool
    del tool.ARCHS['least']


def test_compares_and_writes_json(tool, monkeypatch, tmp_path, capsys):
    out = tmp_path / 'speed.json'
    monkeypatch.setattr('sys.argv', [
        'dualformer_speed.py', '--arch', 'least', '--shape', '16', '224',
        '224', '--repeats', '1', '--device', 'cpu', '--json', str(out)])
    peaks = {name: dict.fromkeys(tool.MODELS, 1.) for name in tool.TASKS}
    monkeypatch.setattr(tool, 'measure_memory', lambda args: peaks)
    tool.main()
    result = json.loads(out.read_text())
    assert max(result['agreement'].values()) < 1e-4
    for task in tool.TASKS:
        assert set(result['seconds'][task]) == {'ours', 'transcription'}
        assert result['ratio_to_ours'][task]['ours'] == 1
    assert 'transcription agree' in capsys.readouterr().out


def test_prints_no_speed_while_the_outputs_differ(tool):
    ours, other = (kind('least') for kind in tool.MODELS.values())
    other.load_state_dict(ours.state_dict())
    with torch.no_grad():
        other.norm.bias += 0.1
    with pytest.raises(SystemExit, match='no timing'):
        tool.check_agreement(ours, other, torch.randn(1, 3, 16, 224, 224))


def test_reports_a_peak(tool, monkeypatch, capsys):
    monkeypatch.setattr('sys.argv', [
        'dualformer_speed.py', '--arch', 'least', '--shape', '16', '224',
        '224', '--device', 'cpu', '--peak', 'forward', 'transcription'])
    tool.main()
    assert 0.1 < float(capsys.readouterr().out) < 8
