# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import re
import subprocess

import pytest
import torch
from benchmark_cases import run_case
from cases import throughput

from mmvidattn.utils.complexity import count_complexity

SETTINGS = dict(
    device='cpu', dtype='float32', layers=1, models=['ours', 'softmax'],
    repeats=2, memory_limit_gib=None, machine='here', torch='2',
    version='0', config='linear_ff_ssv2')


@pytest.fixture
def tool():
    return throughput


@pytest.fixture(scope='module')
def small_run(run_tool, tmp_path_factory):
    """A clip size that fits into the memory, and one that does not."""
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
    for found in models.values():
        assert found['videos_per_second'] == pytest.approx(
            1 / found['seconds'])
        assert 0.1 < found['peak_gib'] < 4
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
    # In ascending cost, whatever the order they were given in.
    assert list(result['points']) == ['2x32', '64x448']
    for found in result['points']['64x448']['models'].values():
        assert found == dict(oom='in one inference')
    assert '| 64x448 | OOM | OOM |' in done.stdout
    assert 'of which there were 0.6 GiB' in done.stdout
    assert '| 64x448 | 2.81 | OOM |' in done.stdout


@pytest.mark.parametrize('code, stderr, oom', [
    (-9, '', True),
    (1, "RuntimeError: DefaultCPUAllocator: can't allocate memory", True),
    (1, 'torch.OutOfMemoryError: CUDA out of memory. Tried', True),
    (1, 'MemoryError', True),
    (-6, "terminate called after throwing 'std::bad_alloc'", True),
    (1, 'SystemExit: no timing: ours and the transcription differ', False),
    (-11, '', False),
])  # yapf: disable
def test_tells_out_of_memory_from_other_failures(tool, monkeypatch, code,
                                                 stderr, oom):
    monkeypatch.setattr(
        tool.subprocess, 'run', lambda args, **kwargs: subprocess.
        CompletedProcess(args, code, '', stderr))
    if oom:
        assert tool.run_task('peak', settings=SETTINGS) is None
    else:
        with pytest.raises(SystemExit, match=f'peak failed:\n{stderr}'):
            tool.run_task('peak', settings=SETTINGS)


def test_models_that_fit_are_timed_without_those_that_do_not(
        tool, monkeypatch):
    timed = []

    def run_task(name, **task):
        if name == 'times':
            timed.append(task['models'])
            return {model: 0.5 for model in task['models']}
        return None if task['model'] == 'ours' else dict(
            first_seconds=1., peak_gib=2., peak_is='x')

    monkeypatch.setattr(tool, 'run_task', run_task)
    models = tool.measure_point((2, 32), SETTINGS)['models']
    assert timed == [['softmax']]
    assert models['ours'] == dict(oom='in one inference')
    assert models['softmax']['videos_per_second'] == 2

    def times_fail(name, **task):
        return None if name == 'times' else run_task(name, **task)

    monkeypatch.setattr(tool, 'run_task', times_fail)
    models = tool.measure_point((2, 32), SETTINGS)['models']
    assert models['softmax']['oom'] == 'beside the other models'


@pytest.mark.parametrize('model, attention', [
    ('ours', 'LinearAttention'), ('orthoformer', 'OrthoformerAttention'),
    ('softmax', 'SoftmaxAttention')])
def test_the_attention_alone_is_replaced(tool, model, attention):
    backbone = tool.build(model, (2, 32), SETTINGS).backbone
    for name in 'temporal_attn', 'spatial_attn':
        module = getattr(backbone.blocks[0], name)
        assert type(module.attention).__name__ == attention
        assert (module.fixation is not None) == (model == 'ours')
        assert len(module.shifts) == 1
    assert getattr(module.attention, 'num_landmarks', 64) == 64
    assert len(backbone.blocks) == 1 and backbone.num_frames == 2


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
def test_check_agrees(tool, dtype):
    found = tool.check((2, 32), dict(SETTINGS, dtype=dtype))
    low = {name for name in found if 'bfloat16' in name}
    assert len(low) == (2 if dtype == 'bfloat16' else 0)
    assert max(v for name, v in found.items() if name not in low) < 1e-5
    assert all(1e-4 < found[name] < 0.05 for name in low)


@pytest.mark.parametrize('softmax', [False, True])
@pytest.mark.parametrize('change', [0.1, float('nan')])
def test_prints_no_speed_while_the_outputs_differ(tool, monkeypatch, softmax,
                                                  change):
    transcribe = tool.transcribe

    def wrong(model, **kwargs):
        other = transcribe(model, **kwargs)
        if kwargs.get('softmax', False) == softmax:
            with torch.no_grad():
                other.norm.bias += change
        return other

    monkeypatch.setattr(tool, 'transcribe', wrong)
    with pytest.raises(SystemExit, match='no timing'):
        tool.check((2, 32), SETTINGS)


@pytest.fixture
def run_faked(tool, monkeypatch):
    """Run the program with nothing measured: one second an inference."""
    measured = []

    def measure_point(point, settings):
        measured.append(tool.name_of(point))
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

    monkeypatch.setattr(tool, 'measure_point', measure_point)
    monkeypatch.setattr(tool, 'run_task', run_task)
    return run


def test_a_run_is_taken_up_where_it_ended(run_faked, tmp_path, capsys):
    args = ['--json', tmp_path / 'x.json', '--points', '4x64', '2x32']
    assert run_faked(*args) == ['2x32', '4x64']
    assert run_faked(*args, '8x64') == ['8x64']
    assert '2x32: taken from' in capsys.readouterr().err
    assert run_faked(*args, '8x64') == []
    table = capsys.readouterr().out
    assert '| 8x64 | 1 (1.00 GiB) | 1 (1.00 GiB) | 1 (1.00 GiB) |' in table
    with pytest.raises(SystemExit, match='figures of another repeats, 10 and '
                       'not 3; name another file'):
        run_faked(*args, '--repeats', 3)


def test_figures_are_written_after_every_clip_size(run_faked, tool, tmp_path,
                                                   monkeypatch):
    measure_point = tool.measure_point

    def interrupted(point, settings):
        if point == (4, 64):
            raise KeyboardInterrupt
        return measure_point(point, settings)

    monkeypatch.setattr(tool, 'measure_point', interrupted)
    args = ['--json', tmp_path / 'x.json', '--points', '2x32', '4x64']
    with pytest.raises(KeyboardInterrupt):
        run_faked(*args)
    assert list(tmp_path.iterdir()) == [tmp_path / 'x.json']
    assert list(json.loads((tmp_path / 'x.json').read_text())['points']) == [
        '2x32']


def test_stops_before_what_does_not_fit_into_the_budget(run_faked, tmp_path,
                                                        capsys):
    args = ['--json', tmp_path / 'x.json', '--points', '16x224', '16x336',
            '96x448', '--repeats', 2, '--models', 'ours', 'softmax']
    assert run_faked(*args, '--budget-seconds', 10) == ['16x224']
    table = capsys.readouterr().out
    assert '| 96x448 | not measured | not measured |' in table
    assert re.search('16x336 was left out: 3. s or more are needed, (9|10) s '
                     'of the budget were left', table)
    left_out = json.loads((tmp_path / 'x.json').read_text())['left_out']
    assert list(left_out) == ['16x336', '96x448']
    assert run_faked(*args, '--budget-seconds', 60) == ['16x336']
    assert '96x448 was left out' in capsys.readouterr().out
    assert run_faked(*args) == ['96x448']


def test_predicts_from_the_largest_before(tool):
    def of(wall, **first):
        return dict(wall_seconds=wall, models={
            name: dict(oom='x') if s is None else dict(
                first_seconds=s, seconds=s) for name, s in first.items()})

    predict = tool.predicted_seconds
    assert predict((2, 28), {}, SETTINGS) is None
    # Four runs of each; ten seconds are spent otherwise.
    points = {'2x28': of(22., ours=1., softmax=2.)}
    assert predict((2, 28), points, SETTINGS) == pytest.approx(22)
    growth = tool.cost_of((16, 224)) / tool.cost_of((2, 28))
    assert growth > 8 * 289 / 9
    assert predict((16, 224), points, SETTINGS) == pytest.approx(
        10 + 12 * growth)
    # A model that was out of memory costs what it would have cost.
    points['4x28'] = of(18., ours=2., softmax=None)
    growth = [tool.cost_of((16, 224)) / tool.cost_of(p)
              for p in ((2, 28), (4, 28))]
    assert predict((16, 224), points, SETTINGS) == pytest.approx(
        10 + 8 * growth[0] + 8 * growth[1])


def test_cost_is_that_of_the_products(tool):
    """Multiply-accumulates of a block with softmax attention, per channel."""
    model = tool.build('softmax', (16, 224), SETTINGS).to('meta')
    found = count_complexity(
        model.backbone.blocks[0],
        torch.empty(1, 16, 17, 17, 512, device='meta')).macs
    dwconv = 9 * 4 * 512 * 16 * 289
    assert 512 * tool.cost_of((16, 224)) == found - dwconv


def test_table_of_the_paper(tool, shared_dir):
    text = (shared_dir / 'papers/linear_ff.txt').read_text('utf-8')
    text = text[text.index('Table 8:'):]
    for model, label in (('orthoformer', 'Orthoformer'), ('ours', 'Ours'),
                         ('softmax', 'Softmax')):
        row = re.search(rf'^{label}\b[^\t]*\t(.*)$', text, re.M)[1].split()
        assert row == ['OOM' if value is None else f'{value:.2f}'
                       for value in tool.PAPER[model]]


def test_table_of_the_paper_has_the_points_asked_for(tool):
    result = dict(settings=SETTINGS, command='c', check=dict(a=0.), points={},
                  left_out={})
    table = tool.as_markdown(result, [(2, 32), (96, 336)])
    assert '| 96x336 | 2.30 | OOM |' in table and 'A100' in table
    assert table.count('| 2x32 |') == 1
    assert 'A100' not in tool.as_markdown(result, [(2, 32)])


def test_prints_a_profile_of_each_model(tool, capsys):
    tool.print_profiles((2, 32), SETTINGS)
    printed = capsys.readouterr().out
    assert 'ours, 2x32, float32, here' in printed
    assert 'softmax, 2x32' in printed
    assert printed.count('Self CPU time total') == 2
    assert 'scaled_dot_product' in printed


@pytest.mark.parametrize('args, error', [
    (['--points', '16'], "'16' is not FRAMESxSIDE"),
    (['--points', '0x224'], "'0x224' is not FRAMESxSIDE"),
    (['--models', 'linear'], "invalid choice: 'linear'"),
    (['--repeats', 0], '--repeats must be at least 1, got 0'),
])
def test_names_what_is_wrong(run_faked, capsys, args, error):
    with pytest.raises(SystemExit):
        run_faked(*args)
    assert error in capsys.readouterr().err
