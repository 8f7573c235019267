# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import argparse
import json

import pytest

from tools.studies import distill_motion as tool

pytestmark = pytest.mark.slow
SMALL = '--train 16 --val 8 --epochs 2 --distill-epochs 1 --steps 0 1 2'


def options(**changes):
    return argparse.Namespace(**dict(
        epochs=8, distill_epochs=4, train=2000, val=400, seeds=[0, 1],
        steps=[0, 500, 1000]) | changes)


def test_runs_differ_only_in_the_compared_settings(tmp_path):
    cfgs = {way: tool.make_config(way, 3, tmp_path, options())
            for way in (tool.TEACHER, *tool.METHODS)}
    teacher, distilled, start, nothing = cfgs.values()
    assert teacher.model.backbone.attention.type == 'SoftmaxAttention'
    path = f'{teacher.work_dir}/epoch_8.pth'
    assert distilled.model.teacher_checkpoint == path == \
        start.model.teacher_checkpoint
    assert (distilled.model.distill_epochs, start.model.distill_epochs) == (
        4, 0)
    assert distilled.model.backbone == start.model.backbone == \
        nothing.model.backbone
    for cfg in cfgs.values():
        for key in ('optim_wrapper', 'param_scheduler', 'train_dataloader',
                    'val_dataloader', 'train_cfg', 'randomness'):
            assert cfg[key] == teacher[key]
    assert len({cfg.work_dir for cfg in cfgs.values()}) == 4


def test_report_has_means_and_seeds(tmp_path):
    results = {
        'teacher': [{0: 10., 500: 60., 1000: 91.}, {0: 11., 500: 70.,
                                                    1000: 92.}],
        'distilled': [{0: 30., 500: 80., 1000: 90.}, {0: 41., 500: 80.,
                                                      1000: 93.}]}
    lines = tool.format_report(results, options()).splitlines()
    assert 'of the teachers is 91.5 (91.0, 92.0).' in lines[0]
    assert lines[2:4] == [
        '|  | 0 | 500 | 1000 |', '| --- | --- | --- | --- |']
    assert lines[-1] == ('| distilled | 35.5 (30.0-41.0) | 80.0 (80.0-80.0) | '
                         '91.5 (90.0-93.0) |')
    tool.draw_curves(tmp_path / 'curves.png', results, options())
    assert (tmp_path / 'curves.png').stat().st_size > 10000


@pytest.mark.parametrize('steps', [[0, 999], [-1, 1000], [0, 1001]])
def test_rejects_steps_beyond_the_run(steps):
    with pytest.raises(ValueError, match='--steps must be from 0 to 1000'):
        tool.check_args(options(steps=steps))


def test_compares_the_methods(run_tool, tmp_path):
    args = ['studies/distill_motion.py', '--out', 'out', '--seeds', 0,
            *SMALL.split()]
    done = run_tool(*args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    runs = {path.stem: json.loads(path.read_text())
            for path in (tmp_path / 'out/results').glob('*.json')}
    assert len(runs) == 4
    assert all([*top1] == ['0', '1', '2'] for top1 in runs.values())
    # Before the first step, both are the same network.
    assert runs['distilled_seed0']['0'] == runs['from_the_teacher_seed0'][
        '0']
    assert (tmp_path / 'out/curves.png').is_file()
    again = run_tool(*args, cwd=tmp_path)
    assert again.stdout == done.stdout
    assert again.stdout == (tmp_path / 'out/report.md').read_text()
