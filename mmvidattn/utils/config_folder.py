# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Folder of configs."""
import difflib
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
# A wheel contains a copy of the configs; a checkout has them in its root.
CONFIG_FOLDERS = (PACKAGE / '.mim/configs', PACKAGE.parent / 'configs')


def config_folder() -> Path:
    """Return the folder of configs, in a checkout or an installed wheel."""
    # In a checkout, the first folder may be a link to the second one.
    folder = next((path.resolve() for path in CONFIG_FOLDERS
                   if path.is_dir()), None)
    if folder is None:
        raise FileNotFoundError(
            f'found no configs in {" or ".join(map(str, CONFIG_FOLDERS))}')
    return folder


def find_base(name: str) -> Path:
    """Find a config of this package for ``_base_ = 'mmvidattn::NAME'``.

    Args:
        name: Path below the folder of configs, such as ``linear_ff_ssv2.py``
            or ``_base_/default_runtime.py``.

    Raises:
        FileNotFoundError: If there is no such config.
    """
    folder = config_folder()
    path = folder / name
    if not path.is_file():
        names = [path.relative_to(folder).as_posix()
                 for path in folder.rglob('*.py')]
        close = difflib.get_close_matches(name, names, cutoff=0.4)
        raise FileNotFoundError(
            f'no config mmvidattn::{name}'
            + (f'; did you mean mmvidattn::{close[0]}?' if close else ''))
    return path
