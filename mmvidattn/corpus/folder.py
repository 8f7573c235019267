# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Folder of results, which keeps the options that it was written with."""
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..utils.files import write_atomically


def open_folder(folder: Path, name: str, settings: Mapping[str, Any],
                command: str) -> None:
    """Create a folder, or check that its results have these options.

    Args:
        folder: The folder.
        name: File of the options in it.
        settings: Options that determine the results, as JSON.
        command: Command that writes the folder, for errors.

    Raises:
        ValueError: If the folder has other options or other files.
    """
    file = folder / name
    if file.is_file():
        kept = json.loads(file.read_text())
        # JSON turns tuples into lists.
        settings = json.loads(json.dumps(settings))
        differing = [
            f'{key} was {kept.get(key)} and now is {settings.get(key)}'
            for key in sorted({*kept, *settings})
            if kept.get(key) != settings.get(key)]
        if differing:
            raise ValueError(f'the results in {folder} have different '
                             f'options: {"; ".join(differing)}. Repeat the '
                             'old options, or choose another folder')
        return
    # Other processes may be writing their options, to hidden files.
    if folder.exists() and any(path.name[0] != '.'
                               for path in folder.iterdir()
                               if path.name != name):
        raise ValueError(f'{folder} is not empty and was not written by '
                         f'{command}: choose a new folder')
    write_atomically(file, json.dumps(settings, indent=2) + '\n', shared=True)
