# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from tools import matrix

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'tools/matrix.py'


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *arguments],
                          capture_output=True, text=True)


def test_pairs_of_versions_are_covered():
    """Check pairs of Python, torch and numpy versions."""
    rows = [row for row in matrix.ROWS if row.torch and row.numpy]
    assert {row.python for row in rows} == {'3.10', '3.11', '3.12', '3.13'}
    results = {
        pair for row in rows for pair in itertools.combinations(
            (row.python, row.torch == matrix.NEWEST, row.mmcv, row.numpy),
            2)
    }
    for python in '3.10', '3.11', '3.12':
        assert {(python, True), (python, False)} <= results
        assert {(python, '1.26'), (python, '2')} <= results
    for newest in True, False:
        assert {(newest, '1.26'), (newest, '2'), (newest, 'mmcv'),
                (newest, 'mmcv-lite')} <= results


def test_dry_run_prints_rows_and_interpreters():
    done = run('--dry-run', '--python', sys.executable)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(':')[0] for line in lines] == [
        str(i + 1) for i in range(len(lines))]
    here = '{}.{}'.format(*sys.version_info)
    assert any(f'Python {here} ({sys.executable})' in line for line in lines)
    one = run('--dry-run', '--rows', '2').stdout
    assert one.startswith('2: Python 3.10') and one.count('\n') == 1
    assert run('--dry-run', '--rows', '99').returncode == 2


def environment_of(tmp_path, **steps):
    environment = matrix.Environment(
        matrix.Row('3.11', '2.4.0', 'mmcv-lite', '2'), sys.executable,
        tmp_path, tmp_path / 'row1')
    results = dict(python='3.11.7', torch='2.4.0+cpu', numpy='2.1.0')
    results |= {'mmcv-lite': '2.1.0', 'opencv-python': '5.0'}
    defaults = dict.fromkeys(('import_package', 'self_test', 'quickstart'),
                             lambda: None)
    defaults |= dict(install=lambda wheel: None, versions=lambda: results)
    for name, function in (defaults | steps).items():
        setattr(environment, name, function)
    return environment


def test_row_reports_the_failed_step_and_its_error(tmp_path):
    environment = environment_of(tmp_path)

    def fail():
        environment.run(sys.executable, '-c', 'print(1); raise OSError("no")')

    environment.quickstart = fail
    cells = matrix.try_row(environment, None)
    assert cells['result'] == 'quickstart failed: OSError: no'
    assert cells['imported'] == '0' and 'quickstart' not in cells
    assert cells['torch'] == '2.4.0+cpu' and cells['mmcv'] == 'mmcv-lite 2.1.0'
    assert 'raise OSError' in environment.log.read_text()


def test_row_fails_if_the_self_test_finds_a_problem(tmp_path):
    environment = environment_of(tmp_path)
    del environment.self_test
    environment.run = lambda *args, **kwargs: (
        '{"findings": [{"level": "ok", "topic": "a", "text": ""},'
        ' {"level": "problem", "topic": "vivit on cpu", "text": "wrong"}]}')
    cells = matrix.try_row(environment, None)
    assert cells['result'] == 'self_test failed: vivit on cpu: wrong'


def test_copy_leaves_out_build_and_run_outputs(tmp_path, monkeypatch):
    root = tmp_path / 'checkout'
    for name in ('data/a.mp4', 'work_dirs/b.pth', '.venv/c', 'setup.py',
                 'tools/data/d.py', 'mmvidattn/.mim/e', 'build/f'):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    monkeypatch.setattr(matrix, 'ROOT', root)
    copy = matrix.copy_checkout(tmp_path / 'copy')
    assert {x.relative_to(copy).as_posix()
            for x in copy.rglob('*') if x.is_file()} == {
                'setup.py', 'tools/data/d.py'}


def test_row_works():
    """Run the row of this Python and the newest torch: minutes, and GB."""
    version = '{}.{}'.format(*sys.version_info)
    rows = [i for i, row in enumerate(matrix.ROWS, 1)
            if row.python == version and row.mmcv == 'mmcv-lite']
    if not rows:
        pytest.skip(f'no row has Python {version}')
    done = run('--rows', str(rows[0]), '--python', sys.executable)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith('| works |')
