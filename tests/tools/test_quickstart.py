# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cv2
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A clone of the checkout, whose environment is the one of the tests."""
    for name in 'tools', 'configs', 'mmvidattn':
        shutil.copytree(ROOT / name, tmp_path / name,
                        ignore=shutil.ignore_patterns('__pycache__', '.mim'))
    (tmp_path / 'tools/setup_env.sh').write_text('echo prepared')
    python = tmp_path / '.venv/bin/python'
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def run(checkout):
    return subprocess.run(['bash', checkout / 'tools/quickstart.sh'],
                          cwd='/', capture_output=True, text=True)


@pytest.mark.parametrize('top1, passes', [(0.9, True), (0.89, False)])
def test_fails_below_ninety_percent(checkout, top1, passes):
    for name in 'train', 'test', 'predict', 'data/motion/make_motion':
        (checkout / f'tools/{name}.py').write_text(f'''
import sys
from pathlib import Path
print(*sys.argv)
folder = Path('work_dirs/quickstart')
if '{name}' == 'train':
    (folder / 'best_acc_top1_epoch_8.pth').touch()
if '{name}' == 'test':
    (folder / 'test/1').mkdir(parents=True)
    (folder / 'test/1/1.json').write_text('{{"acc/top1": {top1}}}')
''')
    done = run(checkout)
    assert (done.returncode == 0) == passes
    assert f'==> top-1 {100 * top1:.1f} %' in done.stdout
    steps = re.findall(r'^==> (\w+).*: \d+ s$', done.stdout, re.M)
    assert steps == ['Environment', 'Videos', 'Training', 'Testing',
                     'Prediction', 'Video']
    assert ('Pictures: ' in done.stdout) == passes
    assert ('expected at least 90 %' in done.stderr) != passes


def test_stops_at_the_first_failure(checkout):
    (checkout / 'tools/setup_env.sh').write_text('exit 3')
    done = run(checkout)
    assert done.returncode == 3 and 'Videos' not in done.stdout


@pytest.mark.slow
def test_reaches_ninety_percent_and_repeats(checkout):
    done = run(checkout)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    work = checkout / 'work_dirs/quickstart'
    assert cv2.imread(str(work / 'prediction.png')).std() > 1
    assert cv2.VideoCapture(str(work / 'prediction.mp4')).read()[0]
    assert len(list(work.glob('test_pictures/*'))) == 10
    last = (work / 'last_checkpoint').stat().st_mtime_ns
    again = run(checkout)
    assert again.returncode == 0
    assert (work / 'last_checkpoint').stat().st_mtime_ns == last
    assert (re.findall('==> top-1 .*', again.stdout) == re.findall(
        '==> top-1 .*', done.stdout))
