# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Where the features of a data root come from."""
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .feature_targets import npy_bytes
from .output import Output

LMDB_FILE = 'data.mdb'
# A frame of a video, counted from 1, at 30 frames a second.
LMDB_KEY = re.compile(r'(.+)_frame_(\d+)\.jpg')


def place_features(output: Output, sources: Mapping[str, Path | None],
                   folders: Mapping[str, str], videos: Sequence[str],
                   rate: float, fps: float) -> list[Path]:
    """See to it that the root has the folders of features that configs read.

    A folder of ``.npy`` files is used where it is: left if it is the one, else
    linked. Features in RULSTM's LMDB are written as ``.npy`` files.

    Args:
        output: The run.
        sources: Of each modality the folder that was given, or None.
        folders: Of each modality the folder's name in the root.
        videos: Those wanted of an LMDB.
        rate: Steps a second, of an LMDB.
        fps: Frames a second of an LMDB.

    Returns:
        The folders in the root, of those modalities that are there.
    """
    found = []
    for modality, source in sources.items():
        place = output.root / folders[modality]
        if source is None:
            if place.is_dir():
                found.append(place)
            continue
        if (source / LMDB_FILE).is_file():
            write_lmdb_features(output, source, place, videos, rate, fps)
        else:
            link_folder(source, place)
        found.append(place)
    if not found:
        raise ValueError(
            'there are no features: say '
            + ' or '.join(f'--{modality} FOLDER' for modality in folders)
            + f', or move them to {output.root / folders["rgb"]}')
    return found


def link_folder(source: Path, place: Path) -> None:
    """Make ``place`` the same folder as ``source``, without a copy."""
    if place.exists():
        if not place.samefile(source):
            raise ValueError(f'{place} is there, and is not {source}: remove '
                             'one of them')
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.unlink(missing_ok=True)
        place.symlink_to(source.resolve(), target_is_directory=True)
    except OSError as error:
        raise ValueError(f'{place} cannot be a link to {source} ({error}): '
                         'move the features there') from None


def open_lmdb(folder: Path):
    """An LMDB, read only.

    Raises:
        ValueError: If the package is not installed, or it is none.
    """
    try:
        import lmdb
    except ImportError:
        raise ValueError(f'{folder} is an LMDB, which needs the package lmdb: '
                         'pip install lmdb') from None
    try:
        return lmdb.open(os.fspath(folder), readonly=True, lock=False)
    except lmdb.Error as error:
        raise ValueError(f'{folder} must be an LMDB: {error}') from None


def write_lmdb_features(output: Output, source: Path, place: Path,
                        videos: Sequence[str], rate: float,
                        fps: float) -> None:
    """Write ``<video>.npy`` of each video; what is there already stays.

    Raises:
        ValueError: If the LMDB has no frame of a video, or its rows differ
            in width.
    """
    with open_lmdb(source) as env, env.begin(buffers=True) as transaction:
        for video in videos:
            path = place / f'{video}.npy'
            if path.is_file():
                output.keep()
                continue
            frames = read_frames(transaction, video)
            if not frames:
                raise ValueError(f'{source} has no frames of {video}, such as '
                                 f'{video}_frame_0000000001.jpg')
            rows = latest_rows(frames, fps / rate)
            if rows is None:
                raise ValueError(
                    f'{source}: the rows of {video} must be of one width, and '
                    'at least a step of them')
            output.write(path, npy_bytes(rows))


def read_frames(transaction, video: str) -> dict[int, np.ndarray]:
    """The row of each frame of a video that there is."""
    frames = {}
    cursor = transaction.cursor()
    more = cursor.set_range(f'{video}_frame_'.encode())
    while more:
        match = LMDB_KEY.fullmatch(bytes(cursor.key()).decode())
        if match is None or match[1] != video:
            break
        frames[int(match[2])] = np.frombuffer(
            bytes(cursor.value()), np.float32)
        more = cursor.next()
    return frames


def latest_rows(frames: Mapping[int, np.ndarray],
                frames_a_step: float) -> np.ndarray | None:
    """Of each step the latest frame that it or a step before it has.

    The part of a step at the end is left out.

    Args:
        frames: Rows by the number of the frame, from 1.
        frames_a_step: How many there are in a step, which need not be whole.

    Returns:
        ``(steps, D)`` or None if there is no step, or widths differ.
    """
    if len({len(row) for row in frames.values()}) != 1:
        return None
    numbers = sorted(frames)
    ends = np.floor(frames_a_step * np.arange(
        1, 1 + round(numbers[-1] / frames_a_step, 6) // 1) + 1e-6)
    # Before the first frame there is nothing but that one.
    latest = np.searchsorted(numbers, ends, side='right').clip(min=1) - 1
    return np.stack([frames[numbers[i]] for i in latest]) if len(
        latest) else None
