# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The file by which a run goes on after it was killed."""
import io
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..utils.files import write_atomically
from ..utils.safe_load import safe_load

VERSION = 1


class StateFile:
    """Keeps the state of a run.

    Args:
        path: The file.
        seconds: Seconds from one state to the next.
        about: Entries that a state must have in common with this run.
    """

    def __init__(self, path: str | Path, seconds: float,
                 about: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.seconds = seconds
        self.about = dict(about)
        self._written_at = time.monotonic()

    def read(self) -> dict[str, Any] | None:
        """Read the state; None if there is no file.

        Raises:
            ValueError: If the file is damaged, no state, or the state of
                another run.
        """
        if not self.path.exists():
            return None
        try:
            state = safe_load(self.path)
            version = state['version']
        except Exception as error:
            raise ValueError(
                f'{self.path} is no state of a run: {error}') from error
        if version != VERSION:
            raise ValueError(
                f'{self.path} must be of version {VERSION}, got {version}')
        for name, wanted in self.about.items():
            if state.get(name) != wanted:
                raise ValueError(
                    f'{self.path} is the state of another run: its {name} '
                    f'must be {wanted!r}, got {state.get(name)!r}; delete it '
                    'to begin anew')
        return state

    def write(self, state: Mapping[str, Any]) -> None:
        """Write a state: tensors, numbers, strings, and lists and dicts of
        them.

        Raises:
            OSError: If it cannot be written; what was there stays.
        """
        data = io.BytesIO()
        torch.save(dict(version=VERSION, **self.about, **state), data)
        write_atomically(self.path, data.getvalue())
        self._written_at = time.monotonic()

    def write_if_due(self, make_state: Callable[[], Mapping[str, Any]]
                     ) -> None:
        """Write a state if the last one is old enough."""
        if time.monotonic() - self._written_at < self.seconds:
            return
        try:
            self.write(make_state())
        except OSError as error:
            # Python shows it once. The state before is still there.
            warnings.warn(f'cannot write {self.path}: {error}')
            self._written_at = time.monotonic()
