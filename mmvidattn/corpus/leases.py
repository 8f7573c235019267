# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Leases of shards, so that processes of several machines share the work."""
import json
import os
import socket
import time
import uuid
from pathlib import Path

from ..utils.files import write_new

FOLDER = 'leases'
# Heartbeats per time that a lease lasts.
BEATS = 6


class Leases:
    """Leases of shards that this process holds.

    A lease is a file in a folder that all machines share. It names its
    holder, a process that touches the file regularly (heartbeats). Another
    process takes the lease over if the holder is a dead process of the same
    machine, or if it has seen no heartbeat for ``seconds`` on its own clock.

    If a holder was suspended or cut off from the disk, two processes may hold
    a lease at the same time. Work under a lease must therefore be correct if
    it is done twice.

    Args:
        folder: Folder of the leases, which is created if it is missing.
        seconds: Time without a heartbeat after which a lease ends.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.seconds = seconds
        self._held: dict[Path, bytes] = {}
        # For each lease that this process does not hold: its last state, and
        # when this process saw the state first.
        self._seen: dict[Path, tuple[tuple[bytes, int], float]] = {}
        self._next_beat = 0.

    def take(self, name: str) -> bool:
        """Take a lease, if it is free or its holder is dead."""
        path = self.folder / name
        return path not in self._held and (
            self._create(path) or self._bury(path) and self._create(path))

    def release(self, name: str) -> None:
        """Give a lease back, unless another process has taken it over."""
        path = self.folder / name
        if _read(path)[0] == self._held.pop(path, None):
            path.unlink(missing_ok=True)

    def release_all(self) -> None:
        for path in [*self._held]:
            self.release(path.name)

    def beat(self) -> None:
        """Touch all leases of this process, if it is time."""
        now = time.monotonic()
        if now < self._next_beat:
            return
        self._next_beat = now + self.seconds / BEATS
        for path, content in [*self._held.items()]:
            if _read(path)[0] == content:
                os.utime(path)
            else:
                del self._held[path]

    def _create(self, path: Path) -> bool:
        content = json.dumps(dict(
            machine=machine(), pid=os.getpid(), start=start_of(os.getpid()),
            lease=uuid.uuid4().hex)).encode()
        if not write_new(path, lambda part: part.write_bytes(content)):
            return False
        self._held[path] = content
        return True

    def _bury(self, path: Path) -> bool:
        """Remove the lease of a dead process; return True if it is gone."""
        content, beat = _read(path)
        if content is None:
            return True
        if not self._is_dead(path, content, beat):
            return False
        grave = path.with_name(f'.{uuid.uuid4().hex}.part')
        try:
            # Of several processes, one succeeds.
            os.rename(path, grave)
        except FileNotFoundError:
            return False
        try:
            if _read(grave)[0] == content:
                return True
            # It is the new lease of a process that was faster: put it back.
            os.link(grave, path)
        except FileExistsError:
            pass
        finally:
            grave.unlink(missing_ok=True)
        return False

    def _is_dead(self, path: Path, content: bytes, beat: int) -> bool:
        holder = json.loads(content)
        if holder['machine'] == machine() and (
                start_of(holder['pid']) != holder['start']):
            return True
        now = time.monotonic()
        state, since = self._seen.get(path, (None, now))
        if state != (content, beat):
            self._seen[path] = (content, beat), now
            return False
        return now - since > self.seconds


def _read(path: Path) -> tuple[bytes | None, int]:
    """Return the content and the time of a file, or None if it is missing."""
    try:
        # Network disks report the current time only of an open file.
        with path.open('rb') as file:
            return file.read(), os.fstat(file.fileno()).st_mtime_ns
    except FileNotFoundError:
        return None, 0


def machine() -> str:
    """Return a name of the machine, and of the container on it."""
    try:
        boot = Path('/proc/sys/kernel/random/boot_id').read_text().strip()
        return (f'{socket.gethostname()} {boot} '
                f'{os.readlink("/proc/self/ns/pid")}')
    except OSError:
        return socket.gethostname()


def start_of(pid: int) -> str | None:
    """Return when a process started, in the unit of the system.

    Returns:
        None if the process is not running; '' if the system does not report
        when it started.
    """
    if not os.path.exists('/proc/self/stat'):
        return ''
    try:
        # The name of the program, in parentheses, may contain blanks.
        fields = Path(f'/proc/{pid}/stat').read_text().rpartition(
            ')')[2].split()
    except OSError:
        return None
    # A zombie does not run.
    return None if fields[0] in 'ZX' else fields[19]
