# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import importlib.util
import json
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / 'tools/benchmark'
SMALL = [f'model.{key}' for key in (
    'backbone.embed_dims=16', 'backbone.num_heads=2', 'backbone.ffn_dims=16',
    'backbone.work_memory_length=3', 'cls_head.in_channels=16')]


@pytest.fixture
def tool(monkeypatch):

    def load(name):
        monkeypatch.syspath_prepend(TOOLS)
        spec = importlib.util.spec_from_file_location(
            f'{name}_tool', TOOLS / f'{name}.py')
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def _run(module, monkeypatch, *args):
    monkeypatch.setattr(sys, 'argv', [
        'tool', '--steps', '2', '--repeats', '1', '--device', 'cpu',
        *map(str, args), '--cfg-options', *SMALL])
    module.main()


def test_speed_is_checked_and_written(tool, monkeypatch, tmp_path, capsys):
    module = tool('stream_speed')
    _run(module, monkeypatch, '--streams', '1', '3', '--no-compile', '--json',
         tmp_path / 'speed.json')
    assert 'the transcription agree' in capsys.readouterr().out
    result = json.loads((tmp_path / 'speed.json').read_text())
    assert result['agreement']['relative'] < 1e-5
    times = result['milliseconds']
    assert times.keys() == {
        'released', 'smoothing', 'window', 'bfloat16', 'int8'}
    assert result['ratio']['window'] == pytest.approx(
        times['released'] / times['window'])
    assert result['frames_a_second'].keys() == {'1', '3'}
    # Lower precision is near, but is not float32.
    for name in 'bfloat16', 'int8':
        assert 0 < result['probability'][name] < 0.1


@pytest.mark.slow
def test_compiled_step_is_checked(tool, monkeypatch, tmp_path):
    module = tool('stream_speed')
    _run(module, monkeypatch, '--json', tmp_path / 'speed.json')
    result = json.loads((tmp_path / 'speed.json').read_text())
    assert result['milliseconds']['compiled'] > 0
    assert result['probability']['compiled'] < 1e-5


def test_no_speed_while_the_scores_differ(tool, monkeypatch, capsys):
    module = tool('stream_speed')
    push = module.TranscribedStream.push

    def wrong(self, frame):
        scores = push(self, frame)
        return scores if scores is None else 1.01 * scores

    monkeypatch.setattr(module.TranscribedStream, 'push', wrong)
    with pytest.raises(SystemExit, match='no timing'):
        _run(module, monkeypatch)
    assert not capsys.readouterr().out


def test_cost_is_measured_and_drawn(tool, monkeypatch, tmp_path, capsys):
    module = tool('stream_cost')
    _run(module, monkeypatch, '--lengths', '4', '9', '--json',
         tmp_path / 'cost.json', '--figure', tmp_path / 'cost.png')
    assert 'cross-attention' in capsys.readouterr().out
    result = json.loads((tmp_path / 'cost.json').read_text())
    assert result['growth'].keys() == set(module.KINDS)
    for kind, times in result['milliseconds'].items():
        assert list(times) == ['4', '9'] and min(times.values()) > 0
        assert result['growth'][kind] == pytest.approx(
            times['9'] / times['4'])
    assert (tmp_path / 'cost.png').read_bytes()[:4] == b'\x89PNG'
