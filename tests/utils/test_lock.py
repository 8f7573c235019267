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


def check_locked(folder, by):
    with pytest.raises(ValueError, match=(
            f'{folder} is in use by another run: {by}')), lock_folder(folder):
        pass


def test_refuses_a_second_run_until_the_first_is_killed(tmp_path):
    """A forked worker does not keep the lock."""
    run = tmp_path / 'run'
    holder = subprocess.Popen([sys.executable, '-c', HOLD, run],
                              stdout=subprocess.PIPE, text=True)
    worker = int(holder.stdout.readline())
    try:
        with lock_folder(tmp_path):
            # Another folder is free.
            check_locked(run, f'host {socket.gethostname()}, process '
                              f'{holder.pid}, started 20')
        holder.kill()
        holder.wait()
        # The worker is still alive, and the lock file is still there.
        assert (run / LOCK).is_file()
        with lock_folder(run):
            check_locked(run, f'host .*, process {os.getpid()}, ')
        assert not (run / LOCK).exists()
    finally:
        holder.kill()
        holder.wait()
        os.kill(worker, signal.SIGKILL)


def test_error_releases_the_lock(tmp_path):
    # The file of an earlier run locks nothing.
    (tmp_path / LOCK).write_text('no json')
    with pytest.raises(RuntimeError), lock_folder(tmp_path):
        # A run that has not written its name yet.
        (tmp_path / LOCK).write_text('')
        check_locked(tmp_path, 'it has just started')
        raise RuntimeError
    with lock_folder(tmp_path), lock_folder(tmp_path / 'new/run'):
        pass
    # Only an empty folder that the lock has made is removed.
    assert [path.name for path in tmp_path.rglob('*')] == ['new']


def test_disk_or_system_without_locks(tmp_path, monkeypatch, capsys):
    def refuse(file, mode):
        raise OSError(errno.ENOLCK, 'No locks available')

    monkeypatch.setattr(fcntl, 'flock', refuse)
    with lock_folder(tmp_path), lock_folder(tmp_path):
        pass
    note = f'note: {tmp_path} cannot be locked (No locks available)'
    assert capsys.readouterr().err.count(note) == 2
    monkeypatch.setattr(lock, 'fcntl', None)
    with lock_folder(tmp_path / 'a'), lock_folder(tmp_path / 'a'):
        assert not [*(tmp_path / 'a').iterdir()]


def test_file_that_an_ended_run_deletes_meanwhile_locks_nothing(
        tmp_path, monkeypatch):
    """The other run deletes the file after this run has opened it."""
    flock, files = fcntl.flock, [tmp_path / LOCK]

    def delete_first(file, mode):
        while files:
            files.pop().unlink()
        flock(file, mode)

    monkeypatch.setattr(fcntl, 'flock', delete_first)
    with lock_folder(tmp_path):
        check_locked(tmp_path, 'host')
