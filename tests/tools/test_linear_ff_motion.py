# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmaction.registry import DATASETS, MODELS
from mmengine.registry import init_default_scope
from scipy import stats

TOOL = Path(__file__).resolve().parents[
    2] / 'tools/studies/linear_ff_motion.py'
sys.path.insert(0, str(TOOL.parent))
import linear_ff_motion as tool  # noqa: E402

SMALL = '--train 16 --val 8 --epochs 1 --seeds 0'.split()
TWO_ROWS = ['--rows', 'all', 'baseline']


def results(out):
    """What the results say but for their time, and when they were written."""
    found = {}
    for file in (out / 'results').glob('*.json'):
        result = json.loads(file.read_text())
        del result['seconds']
        found[file.name] = result, file.stat().st_mtime_ns
    return found


@pytest.fixture(scope='module')
def study(run_tool, tmp_path_factory):
    """A whole study of two rows and one seed."""
    out = tmp_path_factory.mktemp('study') / 'out'
    done = run_tool('studies/linear_ff_motion.py', '--out', out, *SMALL,
                    *TWO_ROWS, '--jobs', 2, cwd=out.parent)
    assert done.returncode == 0, done.stderr
    return out, done


def test_study_trains_rows_and_reports(study):
    out, done = study
    assert set(results(out)) == {'all_seed0.json', 'baseline_seed0.json'}
    for row in 'all', 'baseline':
        result = json.loads((out / f'results/{row}_seed0.json').read_text())
        log, = (out / f'runs/{row}_seed0').glob('*/vis_data/scalars.json')
        logs = [json.loads(line) for line in log.read_text().splitlines()]
        assert result['top1'] == 100 * logs[-1]['acc/top1']
        assert result['train_loss'] == logs[-2]['loss']
        assert f'{row}, seed 0: top-1 {result["top1"]:.1f} %' in done.stderr
    assert '2/2 runs' in done.stderr
    assert (out / 'report.md').read_text() == done.stdout
    report = json.loads((out / 'report.json').read_text())
    assert [row['row'] for row in report['rows']] == ['baseline', 'all']
    assert [claim['verdict'] for claim in report['claims']] == ['undecided']
    assert report['options']['epochs'] == 1
    assert not list(out.rglob('*.part')) and not list(out.rglob('*.pth'))


def test_trains_on_the_frames_of_the_videos(study):
    out, _ = study
    init_default_scope('mmaction')
    for split in tool.SPLITS:
        video, label = (out / f'data/{split}.txt').read_text().split()[:2]
        capture = cv2.VideoCapture(str(out / 'data' / video))
        want = []
        while (read := capture.read())[0]:
            want.append(cv2.resize(read[1], (tool.SIDE, tool.SIDE))[..., ::-1])
        config = tool.make_config('all', 1, str(out / 'frames'))
        dataset = DATASETS.build(config[f'{split}_dataloader'].dataset)
        sample = dataset[0]
        assert int(sample['data_samples'].gt_label) == int(label)
        clip = sample['inputs'][0].permute(1, 2, 3, 0).numpy()
        # Each is a frame of the video, up to the decoders' rounding, and
        # they are in order.
        distance = [[np.abs(np.float32(a) - b).mean() for b in want]
                    for a in clip]
        nearest = np.argmin(distance, axis=1)
        assert np.max(np.min(distance, axis=1)) < 2
        assert len(clip) == tool.NUM_FRAMES
        assert list(nearest) == sorted(set(nearest))


def test_finished_runs_are_not_repeated(study, run_tool):
    out, done = study
    before = results(out)
    frame = next((out / 'frames').rglob('*.png'))
    written = frame.stat().st_mtime_ns
    again = run_tool('studies/linear_ff_motion.py', '--out', out, *SMALL,
                     *TWO_ROWS, cwd=out.parent)
    assert again.returncode == 0, again.stderr
    assert again.stdout == done.stdout
    assert results(out) == before
    assert frame.stat().st_mtime_ns == written


@pytest.mark.slow
def test_interrupted_study_goes_on(study, run_tool, tmp_path):
    out = tmp_path / 'out'
    command = [sys.executable, TOOL, '--out', out, *SMALL, *TWO_ROWS]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True)
    # It has finished one run, and the other one is starting up.
    until = time.monotonic() + 300
    while not (out / 'runs/all_seed0/train.log').exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 143
    with pytest.raises(ProcessLookupError):
        # The training has ended with it,
        os.killpg(process.pid, 0)
    # and was not waited for.
    assert not tool.read_logs(out / 'runs/all_seed0')
    assert set(results(out)) == {'baseline_seed0.json'}
    first = results(out)['baseline_seed0.json']
    (out / 'runs/all_seed0/rubbish').touch()
    done = run_tool('studies/linear_ff_motion.py', '--out', out, *SMALL,
                    *TWO_ROWS, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = results(out)
    assert found['baseline_seed0.json'] == first
    assert not (out / 'runs/all_seed0/rubbish').exists()
    # As if it had not been interrupted.
    whole = results(study[0])
    assert {k: v for k, (v, _) in found.items()} == {
        k: v
        for k, (v, _) in whole.items()
    }


def test_other_options_are_an_error(study, run_main):
    out, _ = study
    before = results(out)
    with pytest.raises(SystemExit) as error:
        run_main('studies/linear_ff_motion.py', '--out', out, *SMALL,
                 '--epochs', 2, '--val', 16)
    message = str(error.value)
    assert message.startswith('linear_ff_motion.py: error: ')
    assert 'epochs was 1, and now is 2' in message
    assert 'val was 8, and now is 16' in message
    assert 'train' not in message
    assert results(out) == before


@pytest.fixture
def run_here(monkeypatch, capsys):
    """Run the study in this process; returns what it printed."""
    handler = signal.getsignal(signal.SIGTERM)

    def run(*args):
        monkeypatch.setattr(sys, 'argv', [str(TOOL), *map(str, args)])
        tool.main()
        return capsys.readouterr().out

    yield run
    signal.signal(signal.SIGTERM, handler)


def test_other_rows_are_an_error(study, run_here, monkeypatch):
    monkeypatch.setitem(tool.ROWS, 'elu', tool.Row(60.42))
    with pytest.raises(SystemExit, match='other options: configs was'):
        run_here('--out', study[0], *SMALL)


@pytest.mark.slow
def test_failed_run_loses_no_other(run_here, monkeypatch, tmp_path):
    monkeypatch.setitem(
        tool.ROWS, 'baseline',
        tool.Row(61.67, {'model.backbone.num_heads': 7}))
    out = tmp_path / 'out'
    with pytest.raises(SystemExit, match='1 of 2 runs failed: baseline, seed'):
        run_here('--out', out, *SMALL, *TWO_ROWS)
    assert set(results(out)) == {'all_seed0.json'}
    assert 'num_heads=7' in (out / 'runs/baseline_seed0/train.log').read_text()
    assert '| baseline | - | - | - | 61.67 |' in (
        out / 'report.md').read_text()


def test_report_only_trains_nothing(study, run_here, tmp_path):
    out = tmp_path / 'out'
    shutil.copytree(study[0], out)
    (out / 'results/baseline_seed0.json').unlink()
    before = results(out)
    printed = run_here('--out', out, '--report-only')
    assert results(out) == before
    assert re.search(r'^\| baseline \| - ', printed, re.M)
    top1 = before['all_seed0.json'][0]['top1']
    assert re.search(rf'^\| all \| {top1:.1f} \| - ', printed, re.M)
    with pytest.raises(SystemExit, match='options.json'):
        run_here('--out', tmp_path / 'none', '--report-only')


@pytest.mark.parametrize('args, error', [
    (['--epochs', '0'], '--epochs must be at least 1, got 0'),
    (['--jobs', '0'], '--jobs must be at least 1, got 0'),
    (['--seeds', '0', '-1'], r'--seeds must be at least 0, got \[0, -1\]'),
], ids=['epochs', 'jobs', 'seeds'])
def test_rejects_options_out_of_range(run_here, tmp_path, args, error):
    with pytest.raises(SystemExit, match=error):
        run_here('--out', tmp_path / 'out', *args)
    assert not (tmp_path / 'out').exists()


def test_refuses_a_folder_that_holds_no_study(run_here, tmp_path):
    (tmp_path / 'mine.txt').touch()
    with pytest.raises(SystemExit, match='is not empty and holds no study'):
        run_here('--out', tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ['mine.txt']


@pytest.mark.parametrize(
    'row, spatial, temporal, fixation, kernel, offset',
    [('baseline', False, False, False, 'relu', 0.25),
     ('spatial_shift', True, False, False, 'relu', 0.25),
     ('temporal_shift', False, True, False, 'relu', 0.25),
     ('both_shifts', True, True, False, 'relu', 0.25),
     ('fixation', False, False, True, 'relu', 0.25),
     ('all', True, True, True, 'relu', 0.25),
     ('sigmoid', True, True, True, 'sigmoid', 0.),
     ('elu', True, True, True, 'elu+1', 0.)],
    ids=list(tool.ROWS))
def test_row_is_the_model_it_names(row, spatial, temporal, fixation, kernel,
                                   offset):
    init_default_scope('mmaction')
    model = MODELS.build(tool.make_config(row, 1, 'data').model)
    patches = model.backbone.patch_embed.projection
    # A patch of several frames would see motion by itself.
    assert isinstance(patches, torch.nn.Conv2d)
    for block in model.backbone.blocks:
        for module in (block.temporal_attn, block.spatial_attn):
            assert len(module.shifts) == spatial + temporal
            assert (module.fixation is not None) == fixation
            assert module.attention.kernel == kernel
            assert module.attention.offset == offset
    clips = torch.rand(2, 1, 3, tool.NUM_FRAMES, tool.SIDE, tool.SIDE)
    assert model(clips, mode='tensor', stage='head').shape == (2, 8)


def test_rows_differ_in_the_model_alone():
    configs = [tool.make_config(row, 3, 'data').to_dict() for row in tool.ROWS]
    models = [config.pop('model') for config in configs]
    assert all(config == configs[0] for config in configs)
    changed = {'attention', 'fixation', 'spatial_shift', 'temporal_shift'}
    for model in models:
        for key in changed:
            del model['backbone'][key]
    assert all(model == models[0] for model in models)


def test_figures_are_the_papers(shared_dir):
    text = (shared_dir / 'papers/linear_ff.txt').read_text()
    found = []
    for table in ('Table 3: Effect of neigh', 'Table 5: Effect of kernel'):
        section = text[text.index(table):]
        section = section[:section.index('Table 4:')] if '3' in table else (
            section[:section.index('Table 4:')])
        found += re.findall(r'\t(\d\d\.\d\d)$', section, re.M)
    ours = {f'{row.paper:.2f}' for row in tool.ROWS.values()}
    assert set(found) == ours


SAMPLES = {
    'agree': ([60., 62, 61], [50., 53, 51]),
    'do not agree': ([50., 53, 51], [60., 62, 61]),
    'within the spread': ([50., 60, 55], [49., 58, 54]),
    'agree, other counts': ([70., 72, 69, 71, 74], [60., 61]),
    'within the spread, two seeds': ([54., 55], [50., 53]),
}


@pytest.mark.parametrize('verdict', SAMPLES)
def test_compare_is_welchs_test(verdict):
    better, worse = SAMPLES[verdict]
    found = tool.compare(better, worse)
    test = stats.ttest_ind(better, worse, equal_var=False)
    low, high = test.confidence_interval(0.95)
    assert found['difference'] - found['margin'] == pytest.approx(low)
    assert found['difference'] + found['margin'] == pytest.approx(high)
    assert (test.pvalue < 0.05) == ('within' not in verdict)
    assert found['verdict'] == verdict.split(',')[0]


@pytest.mark.parametrize('better, worse, verdict', [
    ([1., 1, 1], [0., 0, 0], 'agree'),
    ([1., 1, 1], [1., 1, 1], 'within the spread'),
    ([1., 2], [3.], 'undecided'),
    ([], [1., 2], 'undecided'),
], ids=['no spread', 'equal', 'one seed', 'no seed'])
def test_compare_at_its_limits(better, worse, verdict):
    assert tool.compare(better, worse)['verdict'] == verdict


def test_report_says_what_the_data_say():
    top1 = dict(
        baseline=[50, 52, 51], temporal_shift=[70, 72, 74],
        spatial_shift=[50, 53, 51], fixation=[40, 41, 42], all=[90])
    found = {
        tool.Run(row, seed): dict(top1=value)
        for row, values in top1.items() for seed, value in enumerate(values)
    }
    options = dict(val=8, epochs=1, train=16, motion=tool.MOTION)
    report = tool.make_report(found, list(top1), options)
    row = report['rows'][1]
    assert (row['mean'], row['std']) == (72, np.std(top1['temporal_shift'],
                                                    ddof=1))
    text = tool.format_report(report)
    assert ('| temporal_shift | 72.0 | 2.0 | 70.0, 72.0, 74.0 | 64.18 |'
            in text)
    assert '| all | 90.0 | - | 90.0 | 65.46 |' in text
    for line in (
            'The temporal shift helps: the data agree (temporal_shift - '
            'baseline: +21.0',
            'The spatial shift helps: the difference is within the spread',
            'Feature fixation helps: the data do not agree',
            'All three together help: undecided'):
        assert line in text
    assert '+2.51 in the paper' in text
    # Claims of rows that were not asked for.
    assert 'sigmoid' not in text.lower()


def test_half_written_log_line_is_left_out(tmp_path):
    file = tmp_path / '2020/vis_data/scalars.json'
    file.parent.mkdir(parents=True)
    file.write_text('{"loss": 2.0, "step": 20}\n{"loss": 1.0, "st')
    assert tool.read_logs(tmp_path) == [dict(loss=2.0, step=20)]
