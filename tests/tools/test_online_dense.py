# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / 'tools/benchmark/online_dense.py'
SMALL = {
    'model.backbone.embed_dims': 16,
    'model.backbone.num_heads': 2,
    'model.backbone.ffn_dims': 16,
    'model.backbone.long_memory_length': 8,
    'model.cls_head.in_channels': 16,
}


@pytest.fixture
def tool(monkeypatch):
    monkeypatch.syspath_prepend(TOOL.parent)
    spec = importlib.util.spec_from_file_location('online_dense_tool', TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_windows_are_consecutive_and_full(tool):
    model = tool.get_model('testra_thumos14', cfg_options=SMALL).backbone
    length, long, work = tool.tables(model, 3, 4)
    assert long.shape == (3, 8) and work.shape == (3, 32)
    assert long[1].tolist() == list(range(1, 33, 4))
    assert work[1].tolist() == list(range(33, 65))
    assert length == work[2, -1] + 1


def _run(tool, monkeypatch, *args):
    options = [f'{key}={value}' for key, value in SMALL.items()]
    monkeypatch.setattr(sys, 'argv', [
        'online_dense.py', '--steps', '9', '--batch-size', '4', '--repeats',
        '1', '--device', 'cpu', *map(str, args), '--cfg-options', *options])
    tool.main()


def test_compares_and_writes_json(tool, monkeypatch, tmp_path, capsys):
    _run(tool, monkeypatch, '--json', tmp_path / 'dense.json')
    assert 'the scores agree' in capsys.readouterr().out
    result = json.loads((tmp_path / 'dense.json').read_text())
    assert result['agreement']['relative'] < 1e-5
    seconds = result['seconds']
    assert result['ratio'] == seconds['windows'] / seconds['dense']


def test_prints_no_speed_while_the_scores_differ(tool, monkeypatch, capsys):
    right = tool.dense_features
    monkeypatch.setattr(tool, 'dense_features',
                        lambda *args, **kwargs: 1.1 * right(*args, **kwargs))
    with pytest.raises(SystemExit, match='no timing'):
        _run(tool, monkeypatch)
    assert not capsys.readouterr().out
