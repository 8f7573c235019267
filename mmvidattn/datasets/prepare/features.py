# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Add features to a data root: link a folder, or convert an LMDB."""
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .files import Output, npy_bytes

LMDB_FILE = 'data.mdb'
# Key of a row: frame of a video, counted from 1, at 30 frames per second.
LMDB_KEY = re.compile(r'(.+)_frame_(\d+)\.jpg')


def place_features(output: Output, sources: Mapping[str, Path | None],
                   folders: Mapping[str, str], videos: Sequence[str],
                   rate: float, fps: float) -> list[Path]:
    """Create the feature folders that configs read.

    A folder of ``.npy`` files is linked, unless it is already in place.
    Features in RULSTM's LMDB are converted to ``.npy`` files.

    Args:
        output: Files that this run creates, and their report.
        sources: Folder that the user gave for each modality, or None.
        folders: Folder name in the data root for each modality.
        videos: Videos to convert from an LMDB.
        rate: Steps per second to convert to.
        fps: Frames per second of the LMDB.

    Returns:
        Paths in the data root of the available modalities.
    """
    placed = []
    for modality, source in sources.items():
        place = output.root / folders[modality]
        if source is None:
            if place.is_dir():
                placed.append(place)
            continue
        if (source / LMDB_FILE).is_file():
            write_lmdb_features(output, source, place, videos, rate, fps)
        else:
            link_folder(source, place)
        placed.append(place)
    if not placed:
        raise ValueError(
            'features are missing: pass '
            + ' or '.join(f'--{modality} FOLDER' for modality in folders)
            + f', or move them to {output.root / folders["rgb"]}')
    return placed


def link_folder(source: Path, place: Path) -> None:
    """Create a symbolic link at ``place`` to the folder ``source``."""
    if place.exists():
        if not place.samefile(source):
            raise ValueError(f'{place} exists and differs from {source}: '
                             'remove one folder')
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        place.unlink(missing_ok=True)
        place.symlink_to(source.resolve(), target_is_directory=True)
    except OSError as error:
        raise ValueError(f'cannot link {place} to {source} ({error}): move '
                         'the features there') from None


def open_lmdb(folder: Path):
    """Open an LMDB for reading.

    Raises:
        ValueError: If the folder is not an LMDB, or the package lmdb is not
            installed.
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
    """Write ``<video>.npy`` for each video, unless it exists.

    Raises:
        ValueError: If the LMDB lacks a video, or has rows of different
            widths.
    """
    with open_lmdb(source) as env, env.begin(buffers=True) as transaction:
        for video in videos:
            path = place / f'{video}.npy'
            if path.is_file():
                output.kept += 1
                continue
            frames = read_frames(transaction, video)
            if not frames:
                raise ValueError(f'{source} lacks frames of {video}, such as '
                                 f'{video}_frame_0000000001.jpg')
            rows = latest_rows(frames, fps / rate)
            if rows is None:
                raise ValueError(
                    f'{source}: the rows of {video} must have one width, and '
                    'fill at least one step')
            output.write(path, npy_bytes(rows))


def read_frames(transaction, video: str) -> dict[int, np.ndarray]:
    """Return the features of each available frame of a video, by number."""
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
    """Return the row of the latest available frame for each step.

    An incomplete step at the end is left out.

    Args:
        frames: Rows by frame number, counted from 1.
        frames_a_step: Frames per step; may be fractional.

    Returns:
        ``(steps, D)``; None if there is no complete step, or the rows differ
        in width.
    """
    if len({len(row) for row in frames.values()}) != 1:
        return None
    numbers = sorted(frames)
    ends = np.floor(frames_a_step * np.arange(
        1, 1 + round(numbers[-1] / frames_a_step, 6) // 1) + 1e-6)
    # Steps that end before the first frame use the first frame.
    latest = np.searchsorted(numbers, ends, side='right').clip(min=1) - 1
    return np.stack([frames[numbers[i]] for i in latest]) if len(
        latest) else None
