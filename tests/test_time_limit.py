# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The limit that conftest.py sets to every test."""
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(signal, 'SIGALRM'),
                    reason='this system has no alarms')
def test_a_test_that_hangs_on_a_program_is_ended():
    # The rest of the limit, in seconds, is shortened to one.
    assert signal.alarm(1) > 1
    with pytest.raises(pytest.fail.Exception, match='took longer than'):
        subprocess.run(['sleep', '100'])


@pytest.mark.slow
def test_a_test_that_hangs_in_c_ends_its_process(tmp_path):
    conftest = Path(__file__).with_name('conftest.py')
    tmp_path.joinpath('conftest.py').write_text(
        f'exec(compile(open({str(conftest)!r}).read(), {str(conftest)!r}, '
        "'exec'))\nLIMIT = GRACE = 1\n")
    tmp_path.joinpath('test_hang.py').write_text(
        'import ctypes\n'
        'def test_locks_twice():\n'
        '    mutex = ctypes.create_string_buffer(64)\n'
        '    for _ in range(2):\n'
        '        ctypes.CDLL(None).pthread_mutex_lock(mutex)\n')
    found = subprocess.run(
        [sys.executable, '-m', 'pytest', '-n', '1', tmp_path], timeout=120,
        capture_output=True, text=True)
    assert found.returncode == 1
    assert "crashed while running 'test_hang.py::test_lock" in found.stdout
