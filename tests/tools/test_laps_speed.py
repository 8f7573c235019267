# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import sys
from pathlib import Path

import pytest
import torch

TOOL = Path(__file__).resolve().parents[2] / 'tools/benchmark/laps_speed.py'


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    spec = importlib.util.spec_from_file_location('laps_speed_tool', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compares_and_writes_json(tool, monkeypatch, capsys, tmp_path):
    out = tmp_path / 'speed.json'
    monkeypatch.setattr(sys, 'argv', [
        'laps_speed.py', '--shape', '8', '64', '64', '--arch', 'tiny',
        '--repeats', '1', '--device', 'cpu', '--json', str(out)])
    tool.main()
    result = json.loads(out.read_text())
    assert max(result['agreement'].values()) < 1e-10
    assert result['shape'] == [1, 3, 8, 64, 64]
    for kind in ('forward', 'training step'):
        assert set(result['seconds'][kind]) == {
            'LAPS', '2D', '3D', 'transcription'}
        assert result['ratio_to_2d'][kind]['2D'] == 1
    assert 'the transcription agree' in capsys.readouterr().out


def test_prints_no_speed_while_the_outputs_differ(tool):
    torch.manual_seed(0)
    ours = tool.Visformer('tiny', img_size=64).eval()
    ours.init_weights()
    x = torch.randn(1, 3, 8, 64, 64)
    for p in ours.parameters():
        if p.dim() == 2:
            torch.nn.init.normal_(p, std=p.shape[1]**-0.5)
    ours, x = ours.double(), x.double()
    other = tool.transcribed(ours)
    assert tool.check_agreement(ours, other, x)['output'] < 1e-10
    attn = other.stage3[1].attn
    attn.first, attn.second = attn.first[::-1], attn.second
    with pytest.raises(SystemExit, match='no timing'):
        tool.check_agreement(ours, other, x)
