# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The time limit of tests, set by conftest.py."""
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not hasattr(signal, 'SIGALRM'),
                    reason='this system lacks SIGALRM')
def test_stops_test_that_hangs_in_a_program():
    # Shorten the remaining time to one second.
    assert signal.alarm(1) > 1
    with pytest.raises(pytest.fail.Exception, match='took longer than'):
        subprocess.run(['sleep', '100'])


@pytest.mark.slow
def test_kills_process_of_test_that_hangs_in_c(tmp_path):
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
    result = subprocess.run(
        [sys.executable, '-m', 'pytest', '-n', '1', tmp_path], timeout=120,
        capture_output=True, text=True)
    assert result.returncode == 1
    assert "crashed while running 'test_hang.py::test_lock" in result.stdout
