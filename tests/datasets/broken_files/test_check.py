# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import faulthandler
import os
import signal
import time

import pytest

from mmvidattn.datasets.broken_files import check
from mmvidattn.utils.remote_files import RemoteError


def find_fault(path, every_frame):
    """Behave as the name says."""
    print('noise')
    if 'crash' in path:
        faulthandler.disable()
        os.kill(os.getpid(), signal.SIGSEGV)
    if 'block' in path:
        time.sleep(60)
    if 'away' in path:
        raise RemoteError(f'cannot copy {path}')
    return ValueError('no frames') if 'bad' in path else None


@pytest.mark.parametrize('workers', [1, 3])
def test_names_files_that_crash_or_block_their_process(monkeypatch, workers):
    monkeypatch.setattr(check, 'find_fault', find_fault)
    names = [f'{i}' for i in range(30)]
    names[4], names[9], names[10], names[29] = (
        'crash', 'bad', 'block', 'crash at the end')
    ticks = []
    found = dict(check.check_files(names, workers, 1.,
                                   tick=lambda: ticks.append(1)))
    crashed = 'it crashed the process that read it, or took more than 1 s'
    assert found == {
        'bad': 'ValueError: no frames', 'crash': crashed, 'block': crashed,
        'crash at the end': crashed}
    assert len(ticks) == 30


def test_a_lost_server_ends_the_check(monkeypatch):
    monkeypatch.setattr(check, 'find_fault', find_fault)
    with pytest.raises(RemoteError, match='cannot copy away'):
        list(check.check_files(['a', 'away', 'b'], 2, 9.))
