# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The limit that conftest.py sets to every test."""
import signal
import subprocess

import pytest


@pytest.mark.skipif(not hasattr(signal, 'SIGALRM'),
                    reason='this system has no alarms')
def test_a_test_that_hangs_on_a_program_is_ended():
    # The rest of the limit, in seconds, is shortened to one.
    assert signal.alarm(1) > 1
    with pytest.raises(pytest.fail.Exception, match='took longer than'):
        subprocess.run(['sleep', '100'])
