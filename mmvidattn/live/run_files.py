# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files of a run: its events, and the state from which it resumes."""
import io
import json
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..utils.checkpoint import load_weights_only
from ..utils.files import write_atomically
from ..utils.printable import brief, describe_error
from ..utils.text_files import split_lines

# Length of `EventLog.recent`.
MAX_RECENT = 200
# Version of the state file.
VERSION = 1


class EventLog:
    """Writer of events to a file, immediately, in JSON Lines format.

    Args:
        path: Path of the file. Defaults to no file.
        size: Number of bytes of an existing file to keep and append to; the
            rest is cut off. Defaults to 0, which overwrites the file.

    Raises:
        ValueError: See :func:`read_events`.

    Attributes:
        recent: Latest events.
        size: Size of the file in bytes.
    """

    def __init__(self, path: str | Path | None = None,
                 size: int | None = None) -> None:
        self.recent: deque[dict] = deque(maxlen=MAX_RECENT)
        self.size = 0
        self._file = None
        if path is None:
            return
        if size:
            self.recent.extend(read_events(path, 0, size)[0])
            self.size = size
        else:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        self._file = open(path, 'r+b' if size else 'wb')
        self._file.truncate(self.size)
        self._file.seek(self.size)

    def write(self, events: Sequence[dict]) -> None:
        """Write events, and wait until they are on the disk."""
        self.recent.extend(events)
        if not events or self._file is None:
            return
        lines = ''.join(json.dumps(event, ensure_ascii=False) + '\n'
                        for event in events).encode()
        self._file.write(lines)
        self._file.flush()
        os.fsync(self._file.fileno())
        self.size += len(lines)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_events(path: str | Path, start: int,
                end: int | None = None) -> tuple[list[dict], int]:
    """Read the events of an :class:`EventLog` between two bytes of its file.

    ``end`` defaults to the end of the last complete line.

    Returns:
        Events, and the byte after the last one.

    Raises:
        ValueError: If the file is shorter, or a boundary is inside a line.
    """
    wanted = f'{path} must have events up to byte {end or start}'
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f'{wanted}: {describe_error(error)}') from error
    if end is None:
        end = max(start, data.rfind(b'\n') + 1)
    if len(data) < end or any(
            at and data[at - 1:at] != b'\n' for at in (start, end)):
        raise ValueError(f'{wanted}, got {len(data)} bytes: it is another '
                         'file, or has been changed')
    return [json.loads(line)
            for line in split_lines(data[start:end].decode())], end


class StateFile:
    """File with the state of a run, which is saved every ``seconds``.

    The entries ``about`` identify the run in a state.
    """

    def __init__(self, path: str | Path, seconds: float,
                 **about: Any) -> None:
        self.path = Path(path)
        self.seconds = seconds
        self.about = about
        self._written_at = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """Return the state, or None if the file does not exist.

        Raises:
            ValueError: If the file is damaged, is not a state, or belongs to
                another run.
        """
        if not self.path.exists():
            return None
        try:
            state = load_weights_only(self.path)
            state['version']
        except Exception as error:
            raise ValueError(
                f'{self.path} is not the state of a run: {brief(error)}'
            ) from error
        for name, wanted in dict(version=VERSION, **self.about).items():
            if state.get(name) != wanted:
                raise ValueError(
                    f'{self.path} is the state of another run: its {name} '
                    f'must be {wanted!r}, got {state.get(name)!r}; delete the '
                    'file to start anew')
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Save a state of tensors, numbers, strings, lists and dicts.

        Raises:
            OSError: If the file cannot be written. The saved state remains.
        """
        data = io.BytesIO()
        torch.save(dict(version=VERSION, **self.about, **state), data)
        write_atomically(self.path, data.getvalue())
        self._written_at = time.monotonic()

    def write_if_due(self, make_state: Callable[[], Mapping[str, Any]]
                     ) -> None:
        """Save a state if the saved one is old enough."""
        if time.monotonic() - self._written_at < self.seconds:
            return
        try:
            self.write(make_state())
        except OSError as error:
            # The previous state remains. (Python shows a warning only once.)
            warnings.warn(f'cannot write {self.path}: '
                          f'{describe_error(error)}')
            self._written_at = time.monotonic()
