# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

TOOL = Path(__file__).resolve().parents[
    2] / 'tools/benchmark/linear_ff_speed.py'


def _run(*args):
    done = subprocess.run([sys.executable, TOOL, *map(str, args)],
                          capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compares_and_writes_json(tmp_path):
    out = tmp_path / 'speed.json'
    printed = _run('--shape', 2, 64, 64, '--layers', 1, '--repeats', 1,
                   '--device', 'cpu', '--json', out)
    result = json.loads(out.read_text())
    assert max(result['agreement'].values()) < 1e-4
    for kind in ('forward', 'training step'):
        assert set(result['seconds'][kind]) == {
            'ours', 'softmax', 'softmax, no fixation', 'transcription'
        }
        assert result['ratio_to_ours'][kind]['ours'] == 1
    assert 'transcription agree' in printed


def test_reports_peak_memory(tmp_path):
    out = tmp_path / 'memory.json'
    _run('--memory', 2, 64, 64, '--layers', 1, '--device', 'cpu', '--json',
         out)
    assert 0.1 < json.loads(out.read_text())['peak_gib'] < 4


def test_prints_no_speed_while_the_outputs_differ(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    spec = importlib.util.spec_from_file_location('speed_tool', TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    ours = tool.LinearVideoTransformer(
        num_frames=2, num_layers=1, embed_dims=32, num_heads=2)
    other = tool.transcribed(
        ours, num_frames=2, num_layers=1, embed_dims=32, num_heads=2)
    x = torch.randn(1, 3, 2, 64, 64)
    assert tool.check_agreement(ours, other, x)['output'] < 1e-5
    with torch.no_grad():
        other.norm.bias += 0.1
    with pytest.raises(SystemExit, match='no timing'):
        tool.check_agreement(ours, other, x)
