# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Bounded folder of local copies that many processes share.

Each copy has its folder with a lock file ``.lock``. A process that
uses the copy holds a shared lock. A process that fills or deletes it holds an
exclusive lock. The system releases the locks of a killed process.
"""
import hashlib
import json
import os
import weakref
from collections.abc import Callable
from pathlib import Path

from ..files import replacing

try:
    import fcntl
except ImportError:
    # Windows itself refuses to delete a file that a process has opened.
    fcntl = None

LOCK, TOTAL = '.lock', '.total'
# Share of the limit that is kept when old files are deleted, so that the
# folder is not searched for each new file.
KEPT = .9


class HeldFile:
    """File that is not deleted from the cache while this object exists.

    As a context manager, it yields the path, and releases the file at the end.

    Attributes:
        path: The local file.
    """

    def __init__(self, path: Path, lock: int | None = None) -> None:
        self.path = path
        self.close = weakref.finalize(
            self, _release, lock, os.getpid()) if lock is not None else (
                lambda: None)

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.close()

    def __deepcopy__(self, _: dict) -> 'HeldFile':
        # Pipelines copy the results of their steps.
        return self


class FileCache:
    """Folder of local copies; the least recently used copies are deleted.

    Args:
        folder: The folder, which is created when it is needed.
        limit: Maximum number of bytes. Copies in use are never deleted, so
            the folder is larger while more than this is in use.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit

    def hold(self, key: str, name: str, size_of: Callable[[], int],
             fill: Callable[[Path], None]) -> HeldFile:
        """Return a copy, and create it if it is missing.

        If several processes need the same copy, the first one creates it, and
        the remaining ones wait.

        Args:
            key: Text that identifies the content.
            name: File name of the copy.
            size_of: Function that returns the size in bytes.
            fill: Function that writes the copy to a temporary path.

        Raises:
            ValueError: If the file is larger than the cache.
        """
        entry = self.folder / hashlib.sha256(key.encode()).hexdigest()[:40]
        path = entry / name
        while True:
            lock = _open_lock(entry)
            try:
                if _lock(lock, shared=True, entry=entry):
                    if path.is_file():
                        os.utime(entry / LOCK)
                        return HeldFile(path, lock)
                    _lock(lock, shared=False)
                    if not path.is_file() and _is_current(lock, entry):
                        self._create(entry, path, size_of(), fill)
            except BaseException:
                _release(lock, os.getpid())
                raise
            # The system may have released the lock between its two kinds.
            _release(lock, os.getpid())

    def _create(self, entry: Path, path: Path, size: int,
                fill: Callable[[Path], None]) -> None:
        if size > self.limit:
            raise ValueError(
                f'{path.name} has {size:,} bytes, which is more than the '
                f'cache of {self.limit:,} bytes: increase MMVIDATTN_CACHE_GB')
        for left in entry.glob('.*.part'):
            # A killed process left it.
            left.unlink()
        # Another process counts this size while the file grows.
        (entry / LOCK).write_text(json.dumps(dict(size=size)))
        self._make_room(size)
        with replacing(path, to_disk=False, shared=True) as part:
            fill(part)

    def _make_room(self, size: int) -> None:
        """Count a new file, and delete old ones if the folder is full."""
        file = os.open(self.folder / TOTAL, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(file, shared=False)
            text = os.read(file, 32)
            total = int(text) + size if text.isdigit() else None
            if total is None or total > self.limit:
                # The new file is counted already, by its lock file.
                total = self._delete_oldest(
                    self.limit if total is None else self.limit * KEPT)
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, str(total).encode())
        finally:
            _release(file, os.getpid())

    def _delete_oldest(self, limit: float) -> int:
        """Delete copies until they fit the limit; return their total size."""
        entries = []
        for entry in self.folder.iterdir():
            try:
                used = (entry / LOCK).stat().st_mtime_ns
            except OSError:
                continue
            entries.append((used, entry, _size(entry)))
        total = sum(size for *_, size in entries)
        for _, entry, size in sorted(entries):
            if total <= limit:
                break
            if _delete(entry):
                total -= size
        return total


def _size(entry: Path) -> int:
    """Return the size of a copy; its final size while it is created."""
    try:
        planned = json.loads((entry / LOCK).read_text() or '{}').get('size', 0)
        return max(planned, sum(
            file.stat().st_size for file in entry.iterdir()))
    except (OSError, ValueError):
        return 0


def _delete(entry: Path) -> bool:
    """Delete a copy, unless a process uses it."""
    lock = _open_lock(entry)
    try:
        if not _lock(lock, shared=False, wait=False):
            return False
        for file in entry.iterdir():
            if file.name != LOCK:
                file.unlink()
        if fcntl is not None:
            # Windows cannot delete the open lock file.
            (entry / LOCK).unlink()
            entry.rmdir()
    except OSError:
        # On Windows, the file is in use. Or a process has just locked the
        # empty folder again, which is counted at the next search.
        return False
    finally:
        _release(lock, os.getpid())
    return True


def _open_lock(entry: Path) -> int:
    while True:
        entry.mkdir(parents=True, exist_ok=True)
        try:
            return os.open(entry / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            # Another process has just deleted the folder.
            continue


def _lock(file: int, shared: bool, wait: bool = True,
          entry: Path | None = None) -> bool:
    """Lock an open file.

    Args:
        file: File descriptor.
        shared: Use a shared lock instead of an exclusive one.
        wait: Wait for other processes. Defaults to True.
        entry: Folder of the lock file, to check that the file still exists.

    Returns:
        False if another process holds the lock, or has deleted the file.
    """
    if fcntl is not None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(file, kind if wait else kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            # Some network disks do not support locks.
            pass
    return entry is None or _is_current(file, entry)


def _is_current(file: int, entry: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(entry / LOCK))
    except FileNotFoundError:
        return False


def _release(file: int, owner: int) -> None:
    """Release a lock. A forked process does not release its parent's lock."""
    if fcntl is not None and owner == os.getpid():
        try:
            fcntl.flock(file, fcntl.LOCK_UN)
        except OSError:
            pass
    os.close(file)
