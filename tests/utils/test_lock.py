# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import errno
import fcntl
import multiprocessing
import os
import signal
import socket
import time

import pytest

from mmvidattn.utils import lock
from mmvidattn.utils.lock import LOCK, lock_folder

FORK = multiprocessing.get_context('fork')


def hold(sender, folder):
    """Send an error, or hold the lock and send the number of a worker."""
    try:
        with lock_folder(folder):
            worker = os.fork()
            if worker:
                sender.send(worker)
            time.sleep(100)
    except ValueError as error:
        sender.send(str(error))


def start(folder):
    """Start a process that locks a folder; return it and what it sends."""
    receiver, sender = FORK.Pipe(False)
    process = FORK.Process(target=hold, args=(sender, folder), daemon=True)
    process.start()
    return process, receiver.recv()


def check_locked(folder, by):
    process, error = start(folder)
    assert f'{error}'.startswith(f'{folder} is in use by another run: {by}')
    process.join()


def test_refuses_a_second_run_until_the_first_is_killed(tmp_path):
    """A worker does not keep the lock."""
    run = tmp_path / 'run'
    holder, worker = start(run)
    try:
        with lock_folder(tmp_path):
            # Another folder is free.
            check_locked(run, f'host {socket.gethostname()}, process '
                              f'{holder.pid}, started 20')
        holder.kill()
        holder.join()
        # The worker is still alive, and the lock file is still there.
        assert (run / LOCK).is_file()
        with lock_folder(run):
            check_locked(run, f'host {socket.gethostname()}, process '
                              f'{os.getpid()}, ')
        assert not (run / LOCK).exists()
    finally:
        holder.kill()
        os.kill(worker, signal.SIGKILL)


def test_error_releases_the_lock(tmp_path):
    # The file of an earlier run locks nothing.
    (tmp_path / LOCK).write_text('no json')
    with pytest.raises(RuntimeError), lock_folder(tmp_path):
        # A run that has not written its name yet. Closing the file here would
        # release the lock.
        other = FORK.Process(target=(tmp_path / LOCK).write_text, args=('', ))
        other.start()
        other.join()
        check_locked(tmp_path, 'it has just started')
        raise RuntimeError
    with lock_folder(tmp_path), lock_folder(tmp_path / 'new/run'):
        pass
    # Only an empty folder that the lock has made is removed.
    assert [path.name for path in tmp_path.rglob('*')] == ['new']


def test_disk_or_system_without_locks(tmp_path, monkeypatch, capsys):
    def refuse(file, mode):
        raise OSError(errno.ENOLCK, 'No locks available')

    monkeypatch.setattr(fcntl, 'lockf', refuse)
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
    lockf, files = fcntl.lockf, [tmp_path / LOCK]

    def delete_first(file, mode):
        while files:
            files.pop().unlink()
        lockf(file, mode)

    monkeypatch.setattr(fcntl, 'lockf', delete_first)
    with lock_folder(tmp_path):
        check_locked(tmp_path, 'host')
