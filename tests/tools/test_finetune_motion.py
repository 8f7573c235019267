# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import argparse
import csv
from pathlib import Path

import pytest

from tools.studies import finetune_motion as tool
from tools.studies.finetune_runs import write_list, write_motions

pytestmark = pytest.mark.slow


def test_report_has_means_and_seeds():
    results = {'probe': [dict(top1=x, seconds=y)
                         for x, y in ((50., 10), (70.25, 20))]}
    args = argparse.Namespace(test=200, epochs=3, train=60, seeds=[1, 2])
    lines = tool.format_report(results, args).splitlines()
    assert lines[0].startswith('Top-1 in percent on 200 clips after 3 epochs')
    assert lines[-1] == '| probe | 60.1 | 50.0, 70.2 | 15 |'


def test_clips_have_their_split(tmp_path):
    path = write_list(tmp_path / 'clips.csv', write_motions(
        tmp_path / 'data', 3, 5, 4))
    rows = [*csv.DictReader(open(path))]
    assert [row['split'] for row in rows] == ['train'] * 5 + ['test'] * 4
    assert rows[1]['label'] == 'move up left'
    assert all(Path(row['file']).is_file() for row in rows)


def test_compares_the_methods(run_tool, small_checkpoint, tmp_path):
    args = ['studies/finetune_motion.py', small_checkpoint, '--out', 'out',
            '--seeds', 1, '--epochs', 1, '--train', 8, '--test', 4]
    done = run_tool(*args, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.split('top-1 ')) - 1 == len(tool.METHODS)
    before = (tmp_path / 'out/report.md').read_text()
    again = run_tool(*args, cwd=tmp_path)
    assert again.stdout == done.stdout == before
