# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest

FILES = dict(
    both='''
def test_passes():
    pass

def test_fails():
    assert False
''',
    differs='''
import sys

def test_fixed():
    assert 'mmvidattn' in sys.modules

def test_broken():
    assert 'mmvidattn' not in sys.modules
''',
    only_with_us='''
import sys
assert 'mmvidattn' in sys.modules, 'cannot be imported'

def test_fails_for_another_reason():
    assert False
''')


pytestmark = pytest.mark.slow


def test_lists_the_differences(run_tool, tmp_path):
    (tmp_path / 'tests').mkdir()
    for name, text in FILES.items():
        (tmp_path / f'tests/test_{name}.py').write_text(text)
    done = run_tool('soak/peers.sh', '.', cwd=tmp_path, OUT='out')
    assert done.returncode == 1, done.stdout + done.stderr
    first, second = done.stdout.split('Fail only with mmvidattn: ')
    assert 'tests/test_differs.py::test_fixed' in first
    assert 'Fail only without mmvidattn: 2' in first
    assert second.splitlines()[:2] == [
        '1', '  tests/test_differs.py::test_broken']
    for way, failed in ('without', 2), ('with', 3):
        assert f'{way} mmvidattn: {failed} failed' in first
        assert (tmp_path / f'out/{way}.log').is_file()
    # A checkout in which nothing breaks.
    (tmp_path / 'tests/test_differs.py').unlink()
    done = run_tool('soak/peers.sh', '.', cwd=tmp_path, LIMIT='60')
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'Fail only with mmvidattn: 0\n' in done.stdout


def test_requires_a_checkout(run_tool, tmp_path):
    done = run_tool('soak/peers.sh', 'nothing', cwd=tmp_path)
    assert done.returncode == 2 and 'usage: peers.sh CHECKOUT' in done.stderr
