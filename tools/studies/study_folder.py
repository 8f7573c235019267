# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The folder of a study, which goes on with the same options alone."""
import json
from pathlib import Path
from typing import Any

from mmvidattn.utils.files import write_atomically


def open_study(out: Path, options: dict[str, Any]) -> None:
    """Make the folder of a study, or check that it is of these options.

    Raises:
        ValueError: If it is of others, or of something else.
    """
    options = json.loads(json.dumps(options))
    file = out / 'options.json'
    if file.is_file():
        found = json.loads(file.read_text())
        differing = [key for key in sorted({*found, *options})
                     if found.get(key) != options.get(key)]
        if differing:
            raise ValueError(
                f'--out {out} holds a study with other options '
                f'({", ".join(differing)}, see {file}): repeat those, or '
                'choose another folder')
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f'--out {out} is not empty and holds no study; '
                         'choose a folder that is empty or does not exist')
    (out / 'runs').mkdir(parents=True, exist_ok=True)
    (out / 'results').mkdir(exist_ok=True)
    write_atomically(file, json.dumps(options, indent=2))
