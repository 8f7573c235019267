# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import argparse
import importlib.util
import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

TOOL = Path(__file__).resolve().parents[2] / 'tools/benchmark/vivit_speed.py'


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    spec = importlib.util.spec_from_file_location('vivit_speed', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_compares_and_writes_json(tmp_path, monkeypatch, capsys):
    out = tmp_path / 'speed.json'
    monkeypatch.syspath_prepend(TOOL.parent)
    monkeypatch.setattr(sys, 'argv', [
        'vivit_speed.py', '--frames', '4', '--size', '32', '--arch', 'S',
        '--layers', '1', '--repeats', '1', '--device', 'cpu', '--json',
        str(out)])
    runpy.run_path(str(TOOL), run_name='__main__')
    result = json.loads(out.read_text())
    names = {'joint', 'fact_encoder', 'fact_attention', 'fact_dot'}
    assert names <= set(result['seconds'])
    assert result['times_as_fast_as_joint']['joint'] == 1
    assert result['promised'].keys() == names
    # Four blocks in time behind the single one in space.
    assert result['promised']['fact_dot'] > 1
    assert 'promised' in capsys.readouterr().out
    assert all(value < 1e-4 for value in result['agreement'].values())


def test_prints_no_speed_while_the_outputs_differ(tool):
    args = argparse.Namespace(frames=4, size=32, arch='S', layers=1)
    model, other = tool.ours('joint', args), tool.ours('joint', args)
    other.load_state_dict(model.state_dict())
    for m in (model, other):
        torch.nn.init.constant_(m[1].fc_cls.weight, 0.1)
    x = torch.randn(1, 3, 4, 32, 32)
    assert max(tool.check_agreement(model, dict(it=other), x).values()) == 0
    other[0].encoder.norm.weight.data[0] += 1
    with pytest.raises(SystemExit, match='no timing: ours and'):
        tool.check_agreement(model, dict(it=other), x)


def test_agrees_with_hugging_face(tool):
    pytest.importorskip('transformers')
    args = argparse.Namespace(frames=4, size=32, arch='S', layers=2)
    others, model = tool.theirs(args), tool.ours('joint', args)
    tool.copy_weights(model, next(iter(others.values())))
    found = tool.check_agreement(model, others, torch.randn(1, 3, 4, 32, 32))
    assert len(found) == 4 and max(found.values()) < 1e-5
