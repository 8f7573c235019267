# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""State file from which a run resumes after it was killed."""
import io
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..utils.checkpoint import load_weights_only
from ..utils.files import write_atomically

VERSION = 1


class StateFile:
    """File with the saved state of a run.

    Args:
        path: Path of the file.
        seconds: Seconds between saves.
        about: Entries that identify this run in a state.
    """

    def __init__(self, path: str | Path, seconds: float,
                 about: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.seconds = seconds
        self.about = dict(about)
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
            version = state['version']
        except Exception as error:
            raise ValueError(
                f'{self.path} is not the state of a run: {error}') from error
        if version != VERSION:
            raise ValueError(
                f'{self.path} must be of version {VERSION}, got {version}')
        for name, wanted in self.about.items():
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
            warnings.warn(f'cannot write {self.path}: {error}')
            self._written_at = time.monotonic()
