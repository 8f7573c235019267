# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The file by which a run goes on after it was killed."""
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..datasets.prepare.output import write_atomically
from ..utils.safe_load import safe_load

VERSION = 1


def write_state(path: Path, state: Mapping[str, Any]) -> None:
    """Write a state: tensors, numbers, strings, and lists and dicts of them.

    Raises:
        OSError: If it cannot be written; what was there stays.
    """
    data = io.BytesIO()
    torch.save(dict(version=VERSION, **state), data)
    write_atomically(path, data.getvalue())


def read_state(path: Path, about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read a state.

    Args:
        path: The file.
        about: Entries that must be as they are here.

    Returns:
        The state; None if there is no file.

    Raises:
        ValueError: If it is damaged, no state, or one of something else.
    """
    if not path.exists():
        return None
    try:
        state = safe_load(path)
        version = state['version']
    except Exception as error:
        raise ValueError(f'{path} is no state of a run: {error}') from error
    if version != VERSION:
        raise ValueError(f'{path} must be of version {VERSION}, got {version}')
    for name, wanted in about.items():
        if state.get(name) != wanted:
            raise ValueError(
                f'{path} is the state of another run: its {name} must be '
                f'{wanted!r}, got {state.get(name)!r}; delete it to begin '
                'anew')
    return state
