# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys

import pytest

from mmvidattn.utils import lock
from mmvidattn.utils.lock import LOCK, lock_folder

HOLD = '''
import os, sys, time
from mmvidattn.utils.lock import lock_folder
with lock_folder(sys.argv[1]):
    if not os.fork():
        # The worker prints this itself, after it has closed the lock.
        print(os.getpid(), flush=True)
    time.sleep(100)
'''


@pytest.fixture
def holder(tmp_path):
    """Process that holds the lock and has a forked worker, whose id it prints.
    """
    process = subprocess.Popen([sys.executable, '-c', HOLD, tmp_path / 'run'],
                               stdout=subprocess.PIPE, text=True)
    worker = int(process.stdout.readline())
    yield process
    for pid in process.pid, worker:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def test_refuses_a_second_run_until_the_first_is_killed(holder, tmp_path):
    with lock_folder(tmp_path):
        # Another folder is free.
        pass
    with pytest.raises(ValueError, match='is in use by another run') as error:
        with lock_folder(tmp_path / 'run'):
            pass
    assert (f'host {socket.gethostname()}, process {holder.pid}, started 20'
            in str(error.value))
    holder.kill()
    holder.wait()
    # The worker is still alive, and the lock file is still there.
    assert (tmp_path / 'run' / LOCK).is_file()
    with lock_folder(tmp_path / 'run'):
        with pytest.raises(ValueError, match=f'process {os.getpid()}, '):
            with lock_folder(tmp_path / 'run'):
                pass
    assert not (tmp_path / 'run' / LOCK).exists()


def test_file_of_an_earlier_run_locks_nothing(tmp_path):
    (tmp_path / LOCK).write_text('no json')
    with lock_folder(tmp_path):
        assert f'"pid": {os.getpid()}' in (tmp_path / LOCK).read_text()


def test_error_releases_the_lock(tmp_path):
    with pytest.raises(RuntimeError), lock_folder(tmp_path):
        raise RuntimeError
    with lock_folder(tmp_path):
        pass


def test_run_that_has_not_written_its_name_yet(tmp_path):
    with lock_folder(tmp_path):
        (tmp_path / LOCK).write_text('')
        with pytest.raises(ValueError, match='another run: it has just start'):
            with lock_folder(tmp_path):
                pass


def test_disk_without_locks_prints_a_note(tmp_path, monkeypatch, capsys):
    def refuse(file, mode):
        raise OSError(errno.ENOLCK, 'No locks available')

    monkeypatch.setattr(fcntl, 'flock', refuse)
    for _ in range(2):
        with lock_folder(tmp_path), lock_folder(tmp_path):
            pass
    note = f'note: {tmp_path} cannot be locked (No locks available)'
    assert capsys.readouterr().err.count(note) == 4


def test_system_without_locks_does_not_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, 'fcntl', None)
    with lock_folder(tmp_path / 'a'), lock_folder(tmp_path / 'a'):
        assert not [*(tmp_path / 'a').iterdir()]


def test_file_that_an_ended_run_deletes_meanwhile_locks_nothing(
        tmp_path, monkeypatch):
    """The other run deletes the file after this run has opened it."""
    flock = fcntl.flock
    deletions = [True]

    def delete_first(file, mode):
        if deletions:
            deletions.clear()
            (tmp_path / LOCK).unlink()
        flock(file, mode)

    monkeypatch.setattr(fcntl, 'flock', delete_first)
    with lock_folder(tmp_path):
        with pytest.raises(ValueError, match='in use by another run'):
            with lock_folder(tmp_path):
                pass
