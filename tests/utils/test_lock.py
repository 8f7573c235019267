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


def test_refuses_a_second_run_until_the_first_is_killed(tmp_path):
    """A forked worker does not keep the lock."""
    run = tmp_path / 'run'
    holder = subprocess.Popen([sys.executable, '-c', HOLD, run],
                              stdout=subprocess.PIPE, text=True)
    worker = int(holder.stdout.readline())
    try:
        with lock_folder(tmp_path):
            # Another folder is free.
            pass
        with pytest.raises(ValueError, match=(
                f'is in use by another run: host {socket.gethostname()}, '
                f'process {holder.pid}, started 20')), lock_folder(run):
            pass
        holder.kill()
        holder.wait()
        # The worker is still alive, and the lock file is still there.
        assert (run / LOCK).is_file()
        with lock_folder(run):
            with pytest.raises(ValueError, match=f'process {os.getpid()}, '):
                with lock_folder(run):
                    pass
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
        with pytest.raises(ValueError, match='another run: it has just start'):
            with lock_folder(tmp_path):
                pass
        raise RuntimeError
    with lock_folder(tmp_path):
        pass


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
    flock, deletions = fcntl.flock, [True]

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
