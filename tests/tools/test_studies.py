# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from mmvidattn.apis.models import load_config
from tools.studies import run as program
from tools.studies import verdicts
from tools.studies.report import format_report, make_report
from tools.studies.study import Claim, Row, Study, Training, load, names
from tools.studies.tasks import clip_model, from_image, motion, streams
from tools.studies.tasks.start import build

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
TASKS = dict(clip_model=clip_model, from_image=from_image)
TOY = '--steps 2 --share 0.005'.split()
VIDEO_STUDIES = [name for name in names()
                 if load(name).task in ('clip_model', 'from_image')]


def make_study(*claims, **rows):
    return Study(
        title='A study', paper='https://example.org', task='clip_model',
        config='laps_tiny_motion', steps=1, batch_size=8, rates=(1e-3, ),
        measure='top-1', rows=rows or dict(a=Row(paper=3.), b=Row(paper=1.)),
        claims=claims or [Claim('A is better', 'a', 'b', 'Table 1')])


def scores_of(**rows):
    """Turn lists of scores by row into figures by row and seed."""
    return {row: {seed: dict(score=float(value), rate=1e-3, seconds=2.)
                  for seed, value in enumerate(values)}
            for row, values in rows.items()}


@pytest.mark.parametrize('values, equal, word', [
    ([5, 6, 5, 6], False, 'agrees'),
    ([-5, -6, -5, -6], False, 'disagrees'),
    ([5, 6, 5, 6], True, 'disagrees'),
    ([.1, -.1, .1, -.1], False, 'disagrees'),
    ([.1, -.1, .1, -.1], True, 'agrees'),
    ([9, -9, 9, -9], False, 'undecided')])
def test_verdict_on_a_claim(values, equal, word):
    claim = Claim('A is better', 'a', 'b', 'Table 1', equal)
    scores = scores_of(a=values, b=[0] * 4)
    assert verdicts.verdict_of(claim, scores).word == word


def test_rule_errs_in_at_most_one_of_twenty_claims():
    # The rows do not differ; each test may still find a difference.
    claim = Claim('A is better', 'a', 'b', 'Table 1')
    rng, wrong, trials = np.random.default_rng(0), 0, 1000
    for _ in range(trials):
        scores = scores_of(a=rng.normal(0, 10, 12), b=[0] * 12)
        wrong += verdicts.verdict_of(claim, scores).difference in (
            'above', 'below')
    assert wrong / trials < 0.05 + 3 * (0.05 * 0.95 / trials)**.5


def test_only_rows_of_undecided_claims_are_trained_further():
    study = make_study(
        Claim('A is better', 'a', 'b', 'Table 1'),
        Claim('C is better', 'c', 'a', 'Table 1'),
        a=Row(), b=Row(), c=Row(), alone=Row(view='middle'))
    found = scores_of(a=[5, 6, 5, 6], b=[0] * 4, c=[5, 15, 5, 0],
                      alone=[1] * 4)
    assert program.open_rows(study, found) == ['a', 'c']
    assert program.open_rows(
        study, {row: {} for row in study.rows}) == [*study.rows]
    asked = []

    class Trainer:
        def __call__(self, runs, rates):
            asked.append([run.row for run in runs])
            return {run: dict(val=1., score=float(found_now(run)))
                    for run in runs}

    def found_now(run):
        noisy = dict(c=[30, -30][run.seed % 2])
        return dict(a=5 + run.seed % 2, b=0, alone=0, **noisy)[run.row]

    program.run_study(study, Trainer(), [*study.rows], range(12))
    # The study has a single learning rate, so no runs choose it.
    looks = asked
    assert [len(look) for look in looks] == [16, 16, 24]
    assert {*looks[0]} == {*study.rows} and {*looks[2]} == {'a', 'c'}


def test_rate_with_the_best_validation_is_chosen():
    study = make_study()
    study = Study(**{**vars(study), 'rates': (1e-3, 2e-3, 4e-3)})
    best = dict(a=2e-3, b=4e-3)

    def trainer(runs, rates):
        assert {run.seed for run in runs} == {program.TUNING_SEED}
        return {run: dict(val=50. + (run.rate == best[run.row]), score=0.)
                for run in runs}

    assert program.choose_rates(study, ['a', 'b'], trainer) == best


def test_report_has_verdicts_and_scores():
    study = make_study()
    report = make_report(
        study, dict(score='test'), dict(chance=dict(score=12.5)),
        scores_of(a=[5, 6, 5, 6], b=[0, 1, 0, 1]))
    assert report['decided'] == 1 and report['num_runs'] == 8
    claim, = report['claims']
    assert claim['paper'] == 2. and claim['verdict']['mean'] == 5.
    text = format_report(study, {**report, 'command': 'COMMAND'})
    assert ('| A is better | Table 1 | `a` > `b` | +2.00 | +5.0 ± 0.0 | 4 | '
            '**agrees** |') in text
    assert '| `a` | 3.00 | 0.001 | 4 | 5.5 ± 0.6 |' in text
    assert '| chance | - | - | - | 12.5 |' in text
    assert '**1 of 1 claims' in text


@pytest.mark.parametrize('change', [
    dict(panels=dict(All=['a', 'c'])),
    dict(claims=[Claim('C is better', 'c', 'b', 'Table 1')]),
    dict(rows=dict(a=Row())),
])
def test_claims_and_panels_need_rows_of_the_study(change):
    with pytest.raises(ValueError, match="needs row '[bc]'"):
        Study(**{**vars(make_study()), **change})


def test_blocks_of_clips_are_independent():
    long, part = motion.draw(0, 'train', 270), motion.draw(0, 'train', 250)
    for a, b in zip(long, part):
        np.testing.assert_array_equal(a[:250], b)
    other = motion.draw(1, 'train', 10)
    assert not np.array_equal(other.frames, part.frames[:10])
    assert not np.array_equal(
        motion.draw(0, 'val', 10).frames, part.frames[:10])


def test_shapes_move_in_the_direction_of_their_class():
    clips = motion.draw(3, 'train', 1000)
    # In easy clips, only the shape and few other pixels are bright.
    easy = np.flatnonzero(clips.levels < 0.12)
    assert len(easy) > 80
    bright = np.maximum(
        clips.frames[easy].astype(float).mean(-1) - 255 * .6, 0)
    weight = bright.sum((2, 3))
    rows, columns = np.mgrid[:motion.SIDE, :motion.SIDE]
    x = (bright * columns).sum((2, 3)) / weight
    y = (bright * rows).sum((2, 3)) / weight
    angle = np.degrees(np.arctan2(y[:, 0] - y[:, -1], x[:, -1] - x[:, 0]))
    off = (angle - 45 * clips.labels[easy] + 180) % 360 - 180
    assert np.median(np.abs(off)) < 3 and np.abs(off).max() < 30


def test_only_the_path_depends_on_the_class():
    a, b = (motion._block(0, 'test', 0, 40, label=label) for label in (0, 3))
    np.testing.assert_array_equal(a.levels, b.levels)
    np.testing.assert_allclose(a.places, b.places, atol=1e-9)
    assert {*a.labels} == {*range(8)}
    # The hard split only has difficulties above 0.5, of 0 to 1.
    assert motion.draw(0, 'hard', 100).levels.min() > 0.5


def test_oracle(monkeypatch):
    assert motion.oracle(0, 'test', 40) == 100
    # With noise that hides the shapes, the oracle can only guess.
    monkeypatch.setitem(motion.FACTORS, 'noise', (50., 50.))
    assert motion.oracle(0, 'test', 160) < 40


def test_clips_are_written_once(tmp_path):
    sizes = dict(train=16, val=8, test=8, hard=8)
    limits = clip_model.prepare(tmp_path, sizes)
    assert limits['chance'] == dict(score=12.5, hard=12.5)
    assert limits['oracle']['score'] > 60
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert clip_model.prepare(tmp_path, sizes) == limits
    assert before == {
        path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"sizes was .*'train': 16"):
        clip_model.prepare(tmp_path, {**sizes, 'train': 24})


def test_views():
    frames = np.arange(2 * 8 * 3).reshape(2, 8, 1, 1, 3).astype(np.uint8)
    rng = np.random.default_rng(0)

    def see(view):
        return clip_model._see(frames, view, rng)[:, 0, 0, :, 0, 0]

    assert see('all').tolist() == frames[:, :, 0, 0, 0].tolist()
    assert see('middle').tolist() == [[12] * 8, [36] * 8]
    shuffled = see('shuffled')
    assert shuffled.sort(1).values.tolist() == see('all').tolist()
    assert shuffled.tolist() != see('all').tolist()


@pytest.fixture(scope='module')
def clips(tmp_path_factory):
    folder = tmp_path_factory.mktemp('clips')
    clip_model.prepare(folder, dict(train=40, val=8, test=8, hard=8))
    return folder


def test_rows_share_clips_and_initial_weights(clips):
    study = load('laps')
    reference = load_config(study.config, study.options(study.reference))
    row = load_config(study.config, study.options('2D'))
    start = build
    models = [start(row, None, 3), start(row, reference, 3),
              start(reference, None, 3), start(row, reference, 4)]
    alone, paired, first, other = (model.state_dict() for model in models)
    for name, value in first.items():
        torch.testing.assert_close(paired[name], value, rtol=0, atol=0)
    assert any((paired[name] != other[name]).any() for name in paired)
    results = [clip_model.train(Training(
        row, reference, clips, seed, 1e-3, 2, 8))
        for seed in (3, 3, 4)]
    assert results[0] == results[1] != results[2]


@pytest.mark.parametrize('name', names())
def test_rows_differ(name):
    study = load(name)
    configs = [
        json.dumps([load_config(study.config_of(row),
                                study.options(row)).to_dict(),
                    study.rows[row].view], sort_keys=True, default=str)
        for row in study.rows]
    assert len({*configs}) == len(configs)
    assert study.claims
    texts = [claim.text for claim in study.claims]
    assert len({*texts}) == len(texts)


@pytest.mark.parametrize('name', VIDEO_STUDIES)
def test_every_row_trains(name, tmp_path, monkeypatch):
    study = load(name)
    TASKS[study.task].prepare(
        tmp_path / 'data', dict(train=8, val=8, test=8, hard=8))
    monkeypatch.setattr(torch, 'set_num_threads', lambda number: None)
    monkeypatch.chdir(tmp_path)
    settings = program.Settings(name, tmp_path, 1, {})
    for row in study.rows:
        result = program.train(settings, program.Run(row, 0), 1e-3)
        assert 0 <= result['score'] <= 100 and np.isfinite(result['loss'])


def runs_of(out):
    """Return the figures without times, and the times of the files."""
    found = {}
    for file in (out / 'results').glob('*.json'):
        result = json.loads(file.read_text())
        del result['seconds']
        found[file.name] = result, file.stat().st_mtime_ns
    return found


def test_killed_study_resumes(run_tool, tmp_path):
    out = tmp_path / 'out'
    words = ['laps', '--out', out, *TOY, '--seeds', 1, '--rows',
             'LA', '2D', '--jobs', 1]
    command = [sys.executable, ROOT / 'tools/studies/run.py',
               *map(str, words)]
    with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, 'OMP_NUM_THREADS': '1'}) as process:
        while not list(out.glob('results/*.json')):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=60)[1]
    assert process.returncode == 143, error
    before = runs_of(out)
    assert 0 < len(before) < 8
    done = run_tool('studies/run.py', *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    after = runs_of(out)
    assert len(after) == 2 * len(load('laps').rates) + 2
    assert {name: after[name] for name in before} == before
    text = (out / 'report.md').read_text()
    assert text == done.stdout and '**0 of 1 claims' in text
    assert (out / 'rows.png').stat().st_size > 5000
    report = json.loads((out / 'report.json').read_text())
    assert [row['row'] for row in report['rows']] == ['2D', 'LA']
    again = run_tool('studies/run.py', *words, '--report-only', cwd=tmp_path)
    # The first lines have the command.
    assert again.stdout.splitlines()[3:] == text.splitlines()[3:]
    other = run_tool('studies/run.py', *words, '--steps', 3, cwd=tmp_path)
    assert other.returncode == 1
    assert '(steps was 2, now 3)' in other.stderr
    assert runs_of(out) == after


@pytest.mark.parametrize('first_seed', [0, 100])
def test_report_of_streams(run_main, tmp_path, monkeypatch, first_seed):
    # Paths of data are relative to the working folder.
    monkeypatch.chdir(tmp_path)
    run_main('studies/run.py', 'testra', '--out', 'out', *TOY,
             '--report-only', '--first-seed', first_seed)
    report = json.loads(Path('out/report.json').read_text())
    assert report['distances'] == {
        f'bin_{name}': [*bounds] for name, bounds in streams.BINS.items()}
    assert Path('out/distances.png').is_file()
    # The notes are about the seeds from 0 on.
    page = Path('out/report.md').read_text()
    assert all((note in page) == (first_seed == 0)
               for note in load('testra').notes)
    assert page.splitlines()[0].endswith(
        ' transformers, seeds from 100' if first_seed else ' transformers')


@pytest.mark.parametrize('option, value, message', [
    ('--first-seed', -1, '--first-seed must be from 0 to 9988, got -1'),
    ('--rows', 'nothing', '--rows must be of'),
])
def test_rejects_wrong_options(run_main, tmp_path, option, value, message):
    with pytest.raises(SystemExit) as ended:
        run_main('studies/run.py', 'laps', '--out', tmp_path / 'out', option,
                 value)
    assert message in str(ended.value) and not (tmp_path / 'out').exists()


@pytest.mark.parametrize('name', names())
def test_whole_study_at_toy_size(run_tool, tmp_path, name):
    out = tmp_path / 'out'
    # The study of TeSTra has 114 runs of about 5 s each.
    done = run_tool('studies/run.py', name, '--out', out, *TOY, '--seeds', 4,
                    '--jobs', 2, cwd=tmp_path, limit=1800)
    assert done.returncode == 0, done.stderr
    report = json.loads((out / 'report.json').read_text())
    assert len(report['rows']) == len(load(name).rows)
    assert all(row['seeds'] == 4 for row in report['rows'])
