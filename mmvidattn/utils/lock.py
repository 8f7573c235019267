# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Locks of folders, so that two programs cannot mix their files."""
import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:
    # Without fcntl (Windows), simultaneous runs are not detected.
    fcntl = None

LOCK = '.lock'


@contextmanager
def lock_folder(folder: str | Path) -> Iterator[None]:
    """Lock a folder for this process.

    The lock file ``.lock`` names the host, the process and its start. The
    system releases the lock when the process ends, even if it is killed; a
    remaining lock file has no effect. Workers do not inherit the lock.

    Args:
        folder: The folder, which is created if it is missing, and removed
            after the block if it is still empty.

    Raises:
        ValueError: If another run has locked the folder.
    """
    path = Path(folder, LOCK)
    is_new = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    file = _lock(path)
    if file is None:
        yield
        return
    try:
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps(dict(
            host=socket.gethostname(), pid=os.getpid(),
            start=time.strftime('%Y-%m-%d %H:%M:%S'))).encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(file)
        if is_new:
            with suppress(OSError):
                path.parent.rmdir()


def _lock(path: Path) -> int | None:
    """Return the file descriptor of the lock; None without locks."""
    if fcntl is None:
        return None
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            # Unlike a lock of flock, forked processes do not share this one.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            holder = _describe(os.pread(file, 4096, 0))
            os.close(file)
            raise ValueError(
                f'{path.parent} is in use by another run: {holder}. Wait for '
                'it, stop it, or choose another folder') from None
        except OSError as error:
            # Some network disks do not support locks.
            print(f'note: {path.parent} cannot be locked ({error.strerror}): '
                  'make sure that no other run uses it', file=sys.stderr)
            os.close(file)
            return None
        # Check that a run that has just ended did not delete this file.
        if path.exists() and os.path.samestat(os.fstat(file), os.stat(path)):
            return file
        os.close(file)


def _describe(content: bytes) -> str:
    try:
        return 'host {host}, process {pid}, started {start}'.format(
            **json.loads(content))
    except (ValueError, KeyError):
        return 'it has just started'
