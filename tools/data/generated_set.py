# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Folders of generated data, and the programs that write them."""
import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np


def write_set(out: Path, settings: Mapping[str, Any], overwrite: bool,
              write: Callable[[], None]) -> bool:
    """Write a generated set into a folder, unless the folder has it.

    ``meta.json`` in the folder has the settings, and shows that the generator
    wrote the folder, so that an interrupted run can be repeated.

    Args:
        out: Folder of the set.
        settings: Values that determine the set, including the name of its
            ``generator``. JSON must be able to store them.
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


def options_of_set(doc: str, items: str, train: int, val: int,
                   val_of: str = '') -> argparse.ArgumentParser:
    """Return a parser with the options that all generators have.

    Args:
        doc: Docstring of the program.
        items: Items of the set, such as 'videos'.
        train: Default number of training items.
        val: Default number of validation items.
        val_of: Description of the validation items. Defaults to ``items``
            for validation.
    """
    parser = argparse.ArgumentParser(
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add('out', type=Path, help='folder for the set')
    add('--train', type=int, default=train,
        help=f'number of {items} for training (default: {train})')
    add('--val', type=int, default=val,
        help=f'number of {val_of or f"{items} for validation"} '
        f'(default: {val})')
    add('--seed', type=int, default=0)
    add('--overwrite', action='store_true', help='replace another set')
    return parser


def write_video(path: Path, frames: np.ndarray, fps: float) -> None:
    """Write frames, uint8 RGB [T, H, W, 3], as an mp4 file."""
    # OpenCV allows mp4v far more bits than small frames need, so the
    # compression error does not depend on the motion.
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*'mp4v'), fps,
                             frames.shape[2:0:-1])
    if not writer.isOpened():
        raise OSError(f'OpenCV cannot write {path} with mp4v')
    for frame in frames:
        writer.write(frame[..., ::-1])
    writer.release()


def run_generator(out: Path, make: Callable[[], bool]) -> None:
    """Write a set and print the outcome; exit with one line on an error.

    Args:
        out: Folder of the set.
        make: Function that returns True if it wrote the set.
    """
    try:
        written = make()
    except (ValueError, OSError) as error:
        sys.exit(f'{Path(sys.argv[0]).name}: error: {error}')
    print(f'{out}: '
          + ('written' if written else 'exists already, nothing to do'))
