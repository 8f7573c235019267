# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import os
import sys

import pytest
from helpers import sigterm

from mmvidattn.commands import compare, finetune, make_parser
from mmvidattn.commands.compare import Model, Runs

# Accuracy of each seed.
SCORES = dict(
    base=lambda seed: .5 + .1 * (seed % 3),
    good=lambda seed: .6 + .1 * (seed % 3) + .01 * (seed % 2),
    same=lambda seed: .5 + .1 * (seed % 3),
    noisy=lambda seed: (.2, .9)[seed % 2],
    lost=lambda seed: (.2, .3)[seed % 2])
BASE, GOOD, SAME, NOISY, LOST = (Model(name, []) for name in SCORES)


class FakeRuns(Runs):
    """Runs with the accuracies of SCORES."""

    def __call__(self, model, seed):
        self.metrics.setdefault(model.name, {})[seed] = dict(
            top1=SCORES[model.name](seed), chance=.25, videos=20)


def trained(*models, seeds):
    runs = FakeRuns(None, [], None)
    compare.train(models, runs, seeds, jobs=2)
    return runs


def test_only_undecided_models_are_trained_further():
    runs = trained(BASE, GOOD, SAME, NOISY, seeds=12)
    assert {name: len(each) for name, each in runs.metrics.items()} == dict(
        base=12, good=4, same=4, noisy=12)
    assert len(trained(NOISY, seeds=7).scores(NOISY)) == 7


def report_of(*models):
    return compare.format_report(compare.make_report(
        models, trained(*models, seeds=4)))


def test_report_has_means_spreads_and_verdicts():
    text = report_of(BASE, GOOD, SAME, NOISY)
    lines = [line.split() for line in text.splitlines()[2:6]]
    # 50, 60, 70 and 50 %.
    assert lines[0][1:10:2] == ['base', '4', '57.5', '9.6', '-']
    assert lines[1][-2] == 'better' and '+10.5' in lines[1]
    assert 'no difference' in text.splitlines()[4]
    assert lines[3][-2] == 'undecided'
    assert 'on 20 test videos in percent (chance: 25.0' in text
    assert 'more --seeds' in text
    assert '--seeds' not in report_of(BASE, GOOD)
    assert 'near chance' not in text
    # More seeds do not help models that have learned nothing.
    text = report_of(LOST, Model('lost', []))
    assert 'All models are near chance' in text and '--seeds' not in text
    assert 'no difference' not in text


def test_all_configs_start_alike(tmp_path):
    """A built-in config must not start from the weights of the package
    while others start from nothing."""
    (tmp_path / 'mine.py').write_text(
        "_base_ = 'mmvidattn::linear_ff_tiny_motion.py'")
    names = ['linear_ff_tiny_motion', str(tmp_path / 'mine.py')]
    models = compare.parse_models(names)
    for model in models:
        options = finetune.make_options(make_parser(
            'finetune').parse_intermixed_args([str(tmp_path), *model.options]))
        assert options.weights == 'none'
    mixed = compare.parse_models([f'{names[0]}=default', f'{names[1]}=none'])
    assert [model.name for model in mixed] == [
        'linear_ff_tiny_motion default', 'mine']
    # A module or a part of a config is found before the first training.
    for text, message in (
            ('import torch\n\nclass Own(torch.nn.Module):\n    pass\n',
             'it has code'), ('train_cfg = dict()', 'it lacks `model`')):
        (tmp_path / 'mine.py').write_text(text)
        with pytest.raises(ValueError, match=message):
            compare.parse_models(names)


def test_ends_its_runs_on_sigterm_and_continues_with_other_configs(
        run_main, tmp_path, monkeypatch, capsys):
    (tmp_path / 'videos').mkdir()
    command = ['compare', tmp_path / 'videos', '--out', tmp_path / 'out',
               'linear_ff_tiny_motion']
    pid, program = tmp_path / 'pid', tmp_path / 'python'
    program.write_text(f'#!/bin/sh\necho $$ > {pid}.new\nmv {pid}.new {pid}\n'
                       'exec sleep 3000\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, 'executable', str(program))

    with pytest.raises(SystemExit) as error, sigterm(pid.exists):
        run_main(*command, 'laps_tiny_motion')
    assert error.value.code == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    runs = compare.Runs(tmp_path, [], tmp_path)
    runs.stop()
    with pytest.raises(ValueError, match='x, seed 0 failed'):
        runs(compare.Model('x', []), 0)
    # A subset of the configs, and one more; but not other videos.
    program.write_text('#!/bin/sh\necho epoch 1\necho no videos\nexit 1\n')
    for words in command, [*command, 'vivit_tiny_motion']:
        with pytest.raises(SystemExit, match='seed 0 failed: no videos'):
            run_main(*words)
    assert 'tiny_motion, seed 0: epoch 1\n' in capsys.readouterr().out
    (tmp_path / 'other').mkdir()
    for words, name in ((['compare', tmp_path / 'other', *command[2:]],
                         'source'), ([*command, '--', '--epochs', 2],
                                     'options')):
        with pytest.raises(SystemExit, match=f'runs with another {name} '):
            run_main(*words)


@pytest.mark.slow
def test_configs_of_real_videos(run_main, make_classes, tmp_path, capsys):
    make_classes(tmp_path / 'videos', 'ab')
    base = "_base_ = 'mmvidattn::linear_ff_tiny_motion.py'\n"
    (tmp_path / 'same.py').write_text(base)
    (tmp_path / 'mine.py').write_text(
        base + 'model = dict(backbone=dict(attention=dict('
        '_delete_=True, type="SoftmaxAttention")))\n')
    words = [tmp_path / 'videos', '--out', tmp_path / 'out',
             'linear_ff_tiny_motion', tmp_path / 'mine.py',
             tmp_path / 'same.py']
    options = ['--', '--epochs', 1, '--workers', 0]
    run_main('compare', *words, '--seeds', 1, *options)
    first = json.loads((tmp_path / 'out/report.json').read_text())
    assert [(row['model'], len(row['scores'])) for row in first['rows']] == [
        ('linear_ff_tiny_motion', 1), ('mine', 1), ('same', 1)]
    # One config under two names.
    assert first['rows'][0]['scores'] == first['rows'][2]['scores']
    assert (tmp_path / 'out/scores.png').read_bytes()[:4] == b'\x89PNG'
    # A further seed; the first is not repeated.
    kept = (tmp_path / 'out/mine_seed0/metrics.json').stat().st_mtime_ns
    run_main('compare', *words, '--seeds', 2, *options)
    second = json.loads((tmp_path / 'out/report.json').read_text())
    assert [[*row['scores']] for row in second['rows']] == [['0', '1']] * 3
    assert kept == (
        tmp_path / 'out/mine_seed0/metrics.json').stat().st_mtime_ns
    assert 'undecided' in capsys.readouterr().out
