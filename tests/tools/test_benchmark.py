# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import argparse
import importlib
from pathlib import Path

import pytest
import torch
from benchmark_cases import run_case
from helpers import relative

from tools.benchmark import measure as harness
from tools.benchmark import run

FOLDER = Path(harness.__file__).parent

TASKS = 'forward', 'training step'
# Cases that compare backbones: their models, and quick options.
CASES = dict(
    linear_ff=(
        {'ours', 'softmax', 'softmax, no fixation', 'transcription'},
        ('--shape', 2, 64, 64, '--layers', 1)),
    laps=({'LAPS', '2D', '3D', 'transcription'},
          ('--shape', 8, 32, 32, '--arch', 'tiny')),
    dualformer=({'ours', 'transcription'},
                ('--shape', 16, 224, 224, '--arch', 'least')))
SMALL = [f'model.{option}' for option in (
    'backbone.embed_dims=16', 'backbone.num_heads=2', 'backbone.ffn_dims=16',
    'backbone.long_memory_length=8', 'cls_head.in_channels=16')]


@pytest.fixture
def case_of(monkeypatch):
    """Return a function that loads a case by its name."""

    def load(name):
        case = importlib.import_module(f'tools.benchmark.cases.{name}')
        if name == 'dualformer':
            # A small network, for speed.
            arch = 8, (2, 2, 2, 2), (1, 1, 2, 2)
            names = 'embed_dims', 'num_layers', 'num_heads'
            monkeypatch.setitem(case.ARCHS, 'least', arch)
            monkeypatch.setitem(case.DualFormer.arch_zoo, 'least',
                                dict(zip(names, arch)))
        return case

    return load


@pytest.mark.parametrize('name', CASES)
def test_compares_and_writes_json(case_of, name, tmp_path, capsys):
    models, options = CASES[name]
    case_of(name)
    result = run_case(name, *options, '--repeats', 1, out=tmp_path)
    assert result['agreement'].keys() == {'output', 'gradient'}
    assert max(result['agreement'].values()) < 1e-4
    for task in TASKS:
        assert result['seconds'][task].keys() == models
        assert min(result['seconds'][task].values()) > 0
        assert result['ratio'][task][result['baseline']] == 1
    printed = capsys.readouterr().out
    assert 'ours and the reference agree' in printed
    assert all(model in printed for model in models)
    assert result['command'].startswith(
        f'python tools/benchmark/run.py {name} ')


@pytest.mark.slow
def test_measures_compiled_code_too(case_of, tmp_path, capsys):
    case_of('linear_ff')
    result = run_case('linear_ff', *CASES['linear_ff'][1], '--compile',
                      '--repeats', 1, out=tmp_path)
    assert result['agreement'].keys() == {
        'output', 'gradient', 'compiled output', 'compiled gradient'}
    assert max(result['agreement'].values()) < 1e-4
    for task in TASKS:
        assert result['seconds'][task]['ours, compiled'] > 0
    assert 'ours, compiled' in capsys.readouterr().out


@pytest.mark.parametrize('change', [0.1, float('nan')])
def test_prints_no_speed_while_the_outputs_differ(case_of, change,
                                                  monkeypatch, capsys):
    case = case_of('linear_ff').CASE
    build = case.models['transcription']

    def wrong(args):
        model = build(args)
        model.register_forward_hook(lambda m, x, y: y + change)
        return model

    monkeypatch.setitem(case.models, 'transcription', wrong)
    with pytest.raises(SystemExit, match='no timing: ours and the reference'):
        run_case('linear_ff', *CASES['linear_ff'][1])
    assert not capsys.readouterr().out


@pytest.mark.slow
def test_peak_memory_is_measured_in_processes(tmp_path, capsys):
    models, options = CASES['linear_ff']
    result = run_case(
        'linear_ff', *options, '--memory', 2, 64, 96, out=tmp_path)
    assert result['shape'] == [2, 64, 96]
    for task in TASKS:
        assert result['peak_gib'][task].keys() == models
        assert 0.1 < min(result['peak_gib'][task].values()) < 8
    assert 'clip [2, 64, 96]; peak GiB' in capsys.readouterr().out


def test_empty_and_nan_checks_fail():
    harness.require_agreement(dict(output=1e-5))
    for differences in {}, dict(output=float('nan')), dict(a=0., b=1e-3):
        with pytest.raises(SystemExit, match='no timing'):
            harness.require_agreement(differences)


def test_vivit_compares_and_writes_json(case_of, tmp_path, capsys):
    result = run_case('vivit', '--frames', 4, '--size', 32, '--arch', 'S',
                      '--layers', 1, '--repeats', 1, out=tmp_path)
    names = {'joint', 'fact_encoder', 'fact_attention', 'fact_dot'}
    assert names <= set(result['seconds'])
    assert result['times_as_fast_as_joint']['joint'] == 1
    assert result['promised'].keys() == names
    # Here there are four temporal blocks and one spatial block.
    assert result['promised']['fact_dot'] > 1
    assert 'promised' in capsys.readouterr().out
    assert 0 < max(result['agreement'].values()) < 1e-4


def test_vivit_agrees_with_hugging_face(case_of):
    pytest.importorskip('transformers')
    case = case_of('vivit')
    args = argparse.Namespace(frames=4, size=32, arch='S', layers=2)
    references = case.build_hugging_face(args)
    model = case.build('joint', args)
    case.copy_weights(model, next(iter(references.values())))
    result = case.check(model, references, torch.randn(1, 3, 4, 32, 32))
    assert len(result) == 4 and max(result.values()) < 1e-5


def test_dense_compares_and_writes_json(case_of, tmp_path, capsys):
    result = run_case(
        'dense', '--steps', 9, '--batch-size', 4, '--repeats', 1,
        '--cfg-options', *SMALL, out=tmp_path)
    assert 'ours and the reference agree' in capsys.readouterr().out
    assert result['agreement']['relative'] < 1e-5
    seconds = result['seconds']
    assert result['ratio'] == seconds['windows'] / seconds['dense']


@pytest.mark.slow
def test_models_are_measured_beside_another_checkout(tmp_path):
    result = run_case(
        'models', '--models', 'linear_ff', '--scale', 7, '--modes', 'eager',
        '--dtypes', 'float32', '--tasks', 'forward', '--repeats', 1,
        '--against', FOLDER.parents[1], out=tmp_path)
    key = 'linear_ff, forward, float32'
    assert result['agreement'][key] == {'before, eager': 0., 'eager': 0.}
    assert result['seconds'][key].keys() == {'before, eager', 'eager'}
    assert result['ratio'][key]['before, eager'] == 1


def test_models_are_not_measured_while_they_differ(case_of, monkeypatch):
    class Worker:
        """Worker whose output depends on the dtype."""

        def __init__(self, checkout, **task):
            torch.save(torch.full((3, ), 1. + 0.1 * (
                task['dtype'] == 'bfloat16')), task['out'])

        def __call__(self):
            pytest.fail('measured')

    monkeypatch.setattr(case_of('models'), 'Worker', Worker)
    with pytest.raises(SystemExit, match='no timing'):
        run_case('models', '--models', 'linear_ff', '--tasks', 'forward',
                 '--modes', 'eager', '--amp')


@pytest.mark.slow
def test_models_are_measured_in_two_dtypes(tmp_path):
    result = run_case(
        'models', '--amp', '--models', 'linear_ff', '--scale', 7, '--modes',
        'eager', '--tasks', 'forward', '--repeats', 1, out=tmp_path)
    key = 'linear_ff, forward, eager'
    assert result['seconds'][key].keys() == {'float32', 'bfloat16'}
    # Outputs in two dtypes are close, but not equal.
    assert 1e-4 < result['agreement'][key]['bfloat16'] < 2e-2
    assert result['ratio'][key]['float32'] == 1


@pytest.mark.slow
def test_models_are_measured_with_each_choice(tmp_path):
    result = run_case(
        'models', '--choices', '--models', 'linear_ff', '--scale', 7,
        '--modes', 'eager', '--dtypes', 'float32', '--tasks', 'forward',
        '--repeats', 1, out=tmp_path)
    key = 'linear_ff, forward, float32, eager'
    assert result['seconds'][key].keys() == {'plain', 'default', 'tuned'}
    assert max(result['agreement'][key].values()) < 1e-4
    assert result['ratio'][key]['plain'] == 1


def test_cases_are_listed(capsys):
    with pytest.raises(SystemExit) as end:
        run.main(['--help'])
    assert end.value.code == 0
    listed = capsys.readouterr().out
    for path in (FOLDER / 'cases').glob('*.py'):
        assert path.stem in listed


def test_models_run_in_turns():
    calls = []
    times = harness.measure(
        {name: lambda name=name: calls.append(name) for name in 'abc'}, 3,
        torch.device('cpu'))
    turns = [calls[i:i + 3] for i in range(0, 12, 3)]
    assert len(calls) == 12
    assert all(sorted(turn) == list('abc') for turn in turns)
    assert list(times) == list('abc') and min(times.values()) > 0


@pytest.fixture
def gpu(case_of, monkeypatch):
    """Load the case of a GPU, without compilation."""
    case = case_of('gpu')
    # Compilation takes a minute.
    monkeypatch.setattr(torch, 'compile', lambda function: function)
    return case


@pytest.mark.slow
def test_gpu_runs_all_tables(gpu, tmp_path):
    page = tmp_path / 'gpu.md'
    result = run_case('gpu', '--tiny', '--dtype', 'float32', '--repeats', 1,
                      '--page', page, out=tmp_path)
    assert result['tables'].keys() == gpu.TABLES.keys()
    text = page.read_text()
    for name, table in result['tables'].items():
        assert table['differences'] and not table['wrong'], name
        assert f'## {name}' in text
        for row, cells in table['rows'].items():
            assert f'| {row} |' in text
            assert all(cell['rate'] > 0 for cell in cells.values())
    clips = result['tables']['clips']['rows']
    assert list(clips) == [f'{size}, {task}' for size in ('2x32', '4x32')
                           for task in TASKS]
    assert set(clips['2x32, forward']) == {
        'ours', 'ours, plain', 'orthoformer', 'softmax', 'xvit'}


def test_gpu_compares_every_op_with_plain_code(gpu):
    rows = {row.name: row for row in gpu.ops(
        argparse.Namespace(tiny=True, dtype='float32'), torch.device('cpu'))}
    assert {f'linear_attention, joint, {task}' for task in TASKS} < {*rows}
    assert all(row.variants['plain'].plain and row.variants['ours'].alike
               for row in rows.values())


def test_gpu_leaves_out_wrong_reference_libraries(gpu, monkeypatch, tmp_path,
                                              capsys):
    def ones():
        return lambda: torch.ones(3)

    variants = dict(
        plain=gpu.Variant(ones), ours=gpu.Variant(ones),
        right=gpu.Variant(lambda: lambda: torch.full((3, ), 2.), alike=False,
                          want=lambda: lambda: torch.full((3, ), 2.)),
        wrong=gpu.Variant(lambda: lambda: torch.full((3, ), 3.), alike=False,
                          want=lambda: lambda: torch.full((3, ), 2.)))
    result, printed = _gpu_table(gpu, monkeypatch, tmp_path, capsys, variants)
    assert result['right']['rate'] > 0 and 'calls/s' in printed
    assert result['wrong'] == 'differs by 5.0e-01'


def test_gpu_compares_with_causal_linear_attention(gpu):
    q, k, v = torch.randn(3, 2, 5, 3, 4, dtype=torch.float64)
    want = torch.zeros_like(v)
    for t in range(5):
        for s in range(t + 1):
            want[:, t] += (q[:, t] * k[:, s]).sum(-1, True) * v[:, s]
    got = gpu.causal_linear_attention(q, k, v)
    assert relative(got, want) < 1e-6


def test_gpu_compares_clips_with_float64(gpu, monkeypatch):
    check = ('ours', 'xvit_ssv2', gpu.throughput.MODELS['ours'], (2, 32),
             argparse.Namespace(dtype='float32'), torch.device('cpu'))
    gpu.check_in_float64(*check)
    right = torch.nn.functional.linear
    monkeypatch.setattr(
        torch.nn.functional, 'linear', lambda x, *rest: right(x, *rest) * (
            1.05 if x.dtype == torch.float32 else 1))
    with pytest.raises(SystemExit, match="no timing.*'ours'"):
        gpu.check_in_float64(*check)


def _gpu_table(gpu, monkeypatch, tmp_path, capsys, variants, *options):
    def rows(args, device):
        yield gpu.Row('row', variants, 1, 'calls/s')

    monkeypatch.setitem(gpu.TABLES, 'ops', rows)
    result = run_case('gpu', '--tiny', '--tables', 'ops', '--repeats', 1,
                      *options, out=tmp_path)
    return result['tables']['ops']['rows']['row'], capsys.readouterr().out


def test_gpu_marks_cells_without_memory_or_time(gpu, monkeypatch, tmp_path,
                                                   capsys):
    def full():
        raise torch.cuda.OutOfMemoryError('CUDA out of memory')

    variants = dict.fromkeys(
        ('plain', 'ours'), gpu.Variant(lambda: lambda: torch.ones(3)))
    variants['large'] = gpu.Variant(lambda: full)
    result, printed = _gpu_table(gpu, monkeypatch, tmp_path, capsys, variants)
    assert result['large'] == 'OOM' and result['ours']['rate'] > 0
    assert '| OOM |' in printed
    result, printed = _gpu_table(gpu, monkeypatch, tmp_path, capsys, variants,
                                 '--budget', 0)
    assert set(result.values()) == {'no time'}


def test_gpu_prints_no_table_with_wrong_outputs(gpu, monkeypatch, tmp_path,
                                           capsys):
    variants = dict(
        plain=gpu.Variant(lambda: lambda: torch.ones(3)),
        ours=gpu.Variant(lambda: lambda: torch.full((3, ), 1.1)))
    _, printed = _gpu_table(gpu, monkeypatch, tmp_path, capsys, variants)
    assert 'Not printed' in printed and 'calls/s' not in printed


def test_sliding_windows(tmp_path, capsys, monkeypatch):
    options = ('--size', 32, '--layers', 1, '--frames', 8, '--repeats', 1)
    result = run_case('sliding', *options, '--models', 'vivit, fact_encoder',
                      'linear_ff', out=tmp_path)
    models = result['speedup']
    assert len(models) == 2
    assert max(result['agreement'].values()) < 1e-5
    assert result['stride'] == {
        name: 2 if 'vivit' in name else 1 for name in models}
    for name, seconds in result['seconds'].items():
        assert models[name] == seconds['anew'] / seconds['sliding'] > 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in models)
    # Encodings that depend on their position in the window cannot be reused.
    case = importlib.import_module('tools.benchmark.cases.sliding')
    encode = case.XViT.encode_frames
    monkeypatch.setattr(
        case.XViT, 'encode_frames', lambda self, x: encode(self, x)
        + self.temporal_embed[:, -x.shape[2]:])
    with pytest.raises(SystemExit, match='no timing'):
        run_case('sliding', *options, '--models', 'xvit')


def test_steps_of_causal_streams(tmp_path, capsys, monkeypatch):
    options = ('--causal', '--size', 32, '--layers', 1, '--frames', 4,
               '--repeats', 1, '--history', 6, '--streams', 2)
    result = run_case('sliding', *options, out=tmp_path)
    assert list(result['seconds']) == [
        'clip of 4 frames', 'step at frame 4', 'step at frame 6',
        'step of 2 streams']
    # 8 heads of 64 channels; sums in float32, rounding errors in bfloat16.
    assert 0 < result['shift_bytes'] < result['state_bytes'] - (
        8 * 64 * 65 * (4 + 2))
    assert 'times those of one stream' in capsys.readouterr().out
    # Outputs that differ stop the case.
    case = importlib.import_module('tools.benchmark.cases.sliding')
    forward = case.StreamSession.push
    monkeypatch.setattr(case.StreamSession, 'push', lambda self, x: {
        name: 1.01 * y for name, y in forward(self, x).items()})
    with pytest.raises(SystemExit, match='no timing'):
        run_case('sliding', *options)


def test_measures_planning(tmp_path, capsys):
    result = run_case('planning', '--names', 10, 30, '--pairwise', 20,
                      '--repeats', 1, out=tmp_path)
    assert {key: set(seconds) for key, seconds in result['seconds'].items()
            } == {'10': {'features', 'manifest', 'names', 'pairwise'},
                  '30': {'features', 'manifest', 'names'}}
    assert '| 30 | 0.' in capsys.readouterr().out


def test_planning_is_not_measured_if_names_are_missed(monkeypatch):
    case = importlib.import_module('tools.benchmark.cases.planning')
    monkeypatch.setattr(case, 'read_video_names', lambda path: [])
    with pytest.raises(SystemExit, match='no timing: .* repeat'):
        run_case('planning', '--names', 10)


def test_compares_extraction_with_decoding(tmp_path, capsys, monkeypatch):
    options = ('--videos', 2, '--seconds', 1, '--size', 96, 64,
               '--processes', 1, '--repeats', 1)
    result = run_case('corpus', *options, out=tmp_path)
    assert result['seconds'].keys() == {'decoding', 'extraction'}
    assert 'of the throughput of decoding' in capsys.readouterr().out
    # Other frames stop the case.
    case = importlib.import_module('tools.benchmark.cases.corpus')
    monkeypatch.setattr(case, 'frame_indices', lambda *args: [0])
    with pytest.raises(SystemExit, match='no timing'):
        run_case('corpus', *options)
