# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from pathlib import Path

import pytest
import torch
from benchmark_cases import run_case
from feature_set import write_set

import mmvidattn
from tools.benchmark.cases import stream, stream_cost

CONFIGS = Path(__file__).resolve().parents[2] / 'configs'
SMALL = [f'model.{key}' for key in (
    'backbone.embed_dims=16', 'backbone.num_heads=2', 'backbone.ffn_dims=16',
    'backbone.work_memory_length=3', 'cls_head.in_channels=16')]


def _run(name, *args, out=None):
    return run_case(name, '--steps', 2, '--repeats', 1, *args,
                    '--cfg-options', *SMALL, out=out)


def test_stream_compares_and_writes_json(tmp_path, capsys):
    result = _run('stream', '--streams', 1, 3, '--pushes', 2, '--no-compile',
                  out=tmp_path)
    assert 'the reference agree' in capsys.readouterr().out
    assert result['agreement']['relative'] < 1e-5
    times = result['milliseconds']
    assert times.keys() == {
        'released', 'smoothing', 'window', 'bfloat16', 'int8'}
    assert result['ratio']['window'] == pytest.approx(
        times['released'] / times['window'])
    assert result['streams'].keys() == {'smoothing', 'bfloat16', 'int8'}
    for rows in result['streams'].values():
        assert rows.keys() == {'1', '3'}
        for n, row in rows.items():
            assert row['p50'] <= row['p95'] <= row['p99']
            # With two pushes, p95 is the slower one.
            assert row['frames_a_second'] == pytest.approx(
                2e3 * int(n) / (row['p50'] + row['p95']))
    # Lower precision is close to float32, but not equal.
    for name in 'bfloat16', 'int8':
        assert 0 < result['probability'][name] < 0.1


def test_profile_adds_up_to_the_step(tmp_path, capsys):
    result = run_case(
        'stream_profile', '--repeats', 2, '--streams', 1, 3,
        '--weights', 'float32', 'int8', '--cfg-options', *SMALL, out=tmp_path)
    assert 'MB of weights' in capsys.readouterr().out
    rows = result['rows']
    assert list(rows) == ['float32, 1', 'float32, 3', 'int8, 1', 'int8, 3']
    for row in rows.values():
        assert sum(row['parts'].values()) == pytest.approx(row['seconds'])
        assert min(row['parts'][part] for part in (
            'products', 'attention', 'norms', 'copies')) > 0
    # The weights include 22 classes of 16 channels, but not the layers of the
    # queries.
    step = 2 * 3072 * 16 + 16 * 22
    assert rows['float32, 1']['weight_bytes'] == 4 * (
        step + 16 * 16 * (2 + 7 + 3 + 4 + 3 + 8 + 4 + 5 + 8))
    assert rows['int8, 1']['weight_bytes'] * 4 == \
        rows['float32, 1']['weight_bytes']
    assert rows['float32, 3']['flops'] > 2 * rows['float32, 1']['flops'] > 0


@pytest.mark.slow
def test_compiled_step_is_checked(tmp_path):
    result = _run('stream', out=tmp_path)
    assert result['milliseconds']['compiled'] > 0
    assert result['probability']['compiled'] < 1e-5


def test_no_speed_while_the_scores_differ(monkeypatch, capsys):
    reference = stream.TranscribedStream
    push = reference.push

    def wrong(self, frame):
        scores = push(self, frame)
        return scores if scores is None else 1.01 * scores

    monkeypatch.setattr(reference, 'push', wrong)
    with pytest.raises(SystemExit, match='no timing'):
        _run('stream')
    assert not capsys.readouterr().out


def test_cost_is_measured_and_drawn(tmp_path, capsys):
    result = _run('stream_cost', '--lengths', 8, 16, '--figure',
                  tmp_path / 'cost.png', out=tmp_path)
    kinds = set(stream_cost.KINDS)
    assert 'cross-attention' in capsys.readouterr().out
    assert result['agreement'].keys() == kinds == result['growth'].keys()
    assert max(result['agreement'].values()) < 1e-5
    for kind, times in result['milliseconds'].items():
        assert list(times) == ['8', '16'] and min(times.values()) > 0
        assert result['growth'][kind] == pytest.approx(
            times['16'] / times['8'])
    for name in 'gmacs', 'megabytes':
        counts = result[name]
        assert counts.keys() == kinds
        assert counts['smoothing']['8'] == counts['smoothing']['16'] > 0
        assert counts['window']['8'] < counts['window']['16']
    assert (tmp_path / 'cost.png').read_bytes()[:4] == b'\x89PNG'


@pytest.mark.parametrize('kernel', ['smoothing', 'window'])
def test_no_cost_while_the_scores_differ(monkeypatch, kernel):
    session = stream_cost.StreamSession
    push = session.push

    def wrong(self, features):
        scores = push(self, features)
        if self.step.kernel == kernel:
            scores['action'] = 1.01 * scores['action']
        return scores

    monkeypatch.setattr(session, 'push', wrong)
    with pytest.raises(SystemExit, match='no timing'):
        _run('stream_cost', '--lengths', 8, '--kinds', kernel)


def test_scores_on_a_data_set(tmp_path, capsys):
    root = write_set(tmp_path / 'set', dict(a=70, b=40))
    config = tmp_path / 'config.py'
    config.write_text(f"""
_base_ = '{CONFIGS}/testra_tiny_synthetic.py'
model = dict(
    backbone=dict(in_channels=dict(rgb=3, flow=2), num_anticipation_tokens=2,
                  embed_dims=8, ffn_dims=8, long_memory_length=5),
    cls_head=dict(num_classes=3, in_channels=8))
test_dataloader = dict(dataset=dict(
    data_root='{root}', ann_file='videos.txt', anticipation_steps=2,
    metainfo=dict(classes='{root}/classes.txt'), long_steps=20))
""")
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    torch.save(dict(state_dict=model.state_dict()), tmp_path / 'model.pth')
    result = run_case('stream_scores', tmp_path / 'model.pth', '--config',
                      config, '--repeats', 1, '--streams', 1, 2,
                      out=tmp_path)
    assert 'window x 2: scores differ from windows' in capsys.readouterr().out
    rows = result['results']
    assert list(rows) == ['windows', 'window x 1', 'window x 2',
                          'smoothing x 1', 'smoothing x 2', 'released']
    assert rows['window x 1']['mAP'] == pytest.approx(
        rows['windows']['mAP'], abs=1e-6)
    for row in list(rows.values())[1:]:
        assert row['stream_steps_per_second'] > 0
        assert 0 < row['mAP'] < 1 and 0 < row['anticipation'] < 1
