# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import re
import subprocess

import pytest
import torch
from benchmark_cases import run_case

from tools.benchmark.cases import throughput

SETTINGS = dict(
    device='cpu', dtype='float32', layers=1, models=['ours', 'softmax'],
    repeats=2, memory_limit_gib=None, machine='here', torch='2',
    version='0', config='linear_ff_ssv2')


@pytest.fixture(scope='module')
def small_run(run_tool, tmp_path_factory):
    """Run a clip size that fits into memory, and one that does not."""
    folder = tmp_path_factory.mktemp('throughput')
    done = run_tool(
        'benchmark/run.py', 'throughput', '--points', '64x448', '2x32',
        '--layers', 2, '--models', 'ours', 'softmax', '--repeats', 2,
        '--device', 'cpu', '--memory-limit-gib', 0.6, '--json',
        'new/out.json', cwd=folder)
    assert done.returncode == 0, done.stderr
    return done, json.loads((folder / 'new/out.json').read_text())


@pytest.mark.slow
def test_measures_speed_and_memory(small_run):
    done, result = small_run
    assert result['settings']['repeats'] == 2
    assert len(result['check']) == 4
    assert max(result['check'].values()) < 1e-4
    models = result['points']['2x32']['models']
    assert list(models) == ['ours', 'softmax']
    for got in models.values():
        assert got['videos_per_second'] == pytest.approx(
            1 / got['seconds'])
        assert 0.1 < got['peak_gib'] < 4
    row = re.search(r'\| 2x32 \| ([\d.]+) \(([\d.]+) GiB\) \|', done.stdout)
    assert float(row[1]) == pytest.approx(
        models['ours']['videos_per_second'], rel=0.01)
    assert float(row[2]) == pytest.approx(
        models['ours']['peak_gib'], abs=0.01)
    for part in ('run.py throughput --points 64x448 2x32',
                 f'torch {torch.__version__}; float32; 2 layers; batch 1'):
        assert part in done.stdout
    assert 'ours and the transcription agree' in done.stderr


@pytest.mark.slow
def test_out_of_memory_is_reported_and_survived(small_run):
    done, result = small_run
    # Clip sizes run in ascending cost, not in the given order.
    assert list(result['points']) == ['2x32', '64x448']
    for got in result['points']['64x448']['models'].values():
        assert got == dict(oom='in one inference')
    assert '| 64x448 | OOM | OOM |' in done.stdout
    assert 'limit 0.6 GiB' in done.stdout
    assert '| 64x448 | 2.81 | OOM |' in done.stdout


@pytest.mark.parametrize('code, stderr, oom', [
    (-9, '', True),
    (1, 'torch.OutOfMemoryError: CUDA out of memory. Tried', True),
    (-6, "terminate called after throwing 'std::bad_alloc'", True),
    (1, 'SystemExit: no timing: ours and the transcription differ', False),
    (-11, '', False),
])
def test_recognizes_out_of_memory_errors(monkeypatch, code, stderr, oom):
    def run(args, **kwargs):
        raise subprocess.CalledProcessError(code, args, '', stderr)

    monkeypatch.setattr(subprocess, 'run', run)
    if oom:
        assert throughput.task('peak', settings=SETTINGS) is None
    else:
        with pytest.raises(SystemExit, match=f'peak failed:\n{stderr}'):
            throughput.task('peak', settings=SETTINGS)


def test_only_models_that_fit_are_measured(monkeypatch):
    timed = []

    def run_task(name, **task):
        if name == 'times':
            timed.append(task['models'])
            return {model: 0.5 for model in task['models']}
        return None if task['model'] == 'ours' else dict(
            first_seconds=1., peak_gib=2., peak_is='x')

    monkeypatch.setattr(throughput, 'task', run_task)
    models = throughput.measure_point((2, 32), SETTINGS)['models']
    assert timed == [['softmax']]
    assert models['ours'] == dict(oom='in one inference')
    assert models['softmax']['videos_per_second'] == 2

    def times_fail(name, **task):
        return None if name == 'times' else run_task(name, **task)

    monkeypatch.setattr(throughput, 'task', times_fail)
    models = throughput.measure_point((2, 32), SETTINGS)['models']
    assert models['softmax']['oom'] == 'beside the other models'


def test_check_agrees():
    result = throughput.check((2, 32), dict(SETTINGS, dtype='bfloat16'))
    low = {name for name in result if 'bfloat16' in name}
    assert len(low) == 2
    assert max(v for name, v in result.items() if name not in low) < 1e-5
    assert all(1e-4 < result[name] < 0.05 for name in low)


@pytest.mark.parametrize('softmax', [False, True])
def test_prints_no_speed_while_the_outputs_differ(monkeypatch, softmax):
    transcribe = throughput.transcribe

    def wrong(model, **kwargs):
        other = transcribe(model, **kwargs)
        if kwargs.get('softmax', False) == softmax:
            with torch.no_grad():
                other.norm.bias += 0.1
        return other

    monkeypatch.setattr(throughput, 'transcribe', wrong)
    with pytest.raises(SystemExit, match='no timing'):
        throughput.check((2, 32), SETTINGS)


@pytest.fixture
def run_faked(monkeypatch):
    """Run the program with fake results of one second per inference."""
    measured = []

    def measure_point(point, settings):
        measured.append(throughput.name_of(point))
        models = {
            name: dict(first_seconds=1., seconds=1., videos_per_second=1.,
                       peak_gib=1., peak_is='resident')
            for name in settings['models']
        }
        return dict(models=models, wall_seconds=20.)

    def run_task(name, **task):
        assert name == 'check' and not measured
        return dict(output=1e-7)

    def run(*args):
        measured.clear()
        run_case('throughput', *args)
        return list(measured)

    monkeypatch.setattr(throughput, 'measure_point', measure_point)
    monkeypatch.setattr(throughput, 'task', run_task)
    return run


def test_interrupted_run_resumes(run_faked, tmp_path, capsys):
    args = ['--json', tmp_path / 'x.json', '--points', '4x64', '2x32']
    assert run_faked(*args) == ['2x32', '4x64']
    assert run_faked(*args, '8x64') == ['8x64']
    assert '2x32: taken from' in capsys.readouterr().err
    assert run_faked(*args, '8x64') == []
    table = capsys.readouterr().out
    assert '| 8x64 | 1 (1.00 GiB) | 1 (1.00 GiB) | 1 (1.00 GiB) |' in table
    with pytest.raises(SystemExit, match=r'\(repeats was 10, now 3\)'):
        run_faked(*args, '--repeats', 3)


def test_stops_before_the_budget_is_exceeded(run_faked, tmp_path, capsys):
    args = ['--json', tmp_path / 'x.json', '--points', '16x224', '16x336',
            '96x448', '--repeats', 2, '--models', 'ours', 'softmax']
    assert run_faked(*args, '--budget-seconds', 10) == ['16x224']
    table = capsys.readouterr().out
    assert '| 96x448 | not measured | not measured |' in table
    assert re.search('16x336 was left out: .* 3. s, and (9|10) s of the '
                     'budget', table)
    left_out = json.loads((tmp_path / 'x.json').read_text())['left_out']
    assert list(left_out) == ['16x336', '96x448']
    assert run_faked(*args, '--budget-seconds', 60) == ['16x336']
    assert '96x448 was left out' in capsys.readouterr().out
    assert run_faked(*args) == ['96x448']


def test_table_of_the_paper(shared_dir):
    text = (shared_dir / 'papers/linear_ff.txt').read_text('utf-8')
    text = text[text.index('Table 8:'):]
    for model, label in (('orthoformer', 'Orthoformer'), ('ours', 'Ours'),
                         ('softmax', 'Softmax')):
        row = re.search(rf'^{label}\b[^\t]*\t(.*)$', text, re.M)[1].split()
        assert row == ['OOM' if value is None else f'{value:.2f}'
                       for value in throughput.PAPER[model]]


@pytest.mark.slow
def test_prints_a_profile_of_each_model(capsys):
    throughput.print_profiles((2, 32), SETTINGS)
    printed = capsys.readouterr().out
    assert 'ours, 2x32, float32, here' in printed
    assert 'softmax, 2x32' in printed
    assert printed.count('Self CPU time total') == 2
    assert 'scaled_dot_product' in printed
