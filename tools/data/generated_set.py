# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Folders of generated data."""
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def write_set(out: Path, settings: Mapping[str, Any], overwrite: bool,
              write: Callable[[], None]) -> bool:
    """Write a generated set into a folder, unless the folder has it.

    ``meta.json`` in the folder has the settings, and marks the folder as the
    generator's own, so that an interrupted run can be repeated.

    Args:
        out: Folder of the set.
        settings: What determines the set, with the name of its
            ``generator``, as JSON.
        overwrite: Replace another set of the same generator.
        write: Function that writes all other files, and overwrites an earlier
            set.

    Returns:
        True if the set was written.

    Raises:
        FileExistsError: If the folder has other files, or another set without
            ``overwrite``.
    """
    wanted = {**json.loads(json.dumps(settings)), 'complete': True}
    meta = out / 'meta.json'
    if meta.is_file():
        found = json.loads(meta.read_text())
        if found == wanted:
            return False
        if found.get('generator') != wanted['generator']:
            raise FileExistsError(f'{meta} was not written by this tool')
        if found['complete'] and not overwrite:
            raise FileExistsError(
                f'{out} has another set ({meta}: {found}); choose another '
                'folder, or replace the set with --overwrite')
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FileExistsError(
            f'{out} is not empty and was not written by this tool; choose a '
            'folder that is empty or does not exist')
    out.mkdir(parents=True, exist_ok=True)
    meta.write_text(json.dumps({**wanted, 'complete': False}))
    write()
    meta.write_text(json.dumps(wanted))
    return True


def check_sizes(train: int, val: int, seed: int, least_train: int = 1) -> None:
    """Check the numbers of items and the seed of a set.

    Raises:
        ValueError: If a number is too small.
    """
    for name, value, least in (('train', train, least_train),
                               ('val', val, 1), ('seed', seed, 0)):
        if value < least:
            raise ValueError(f'{name} must be at least {least}, got {value}')
