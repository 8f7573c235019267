# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes of long videos: place features, and write targets or segments."""
import argparse
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...utils.printable import count
from ..annotations.published import FPS
from ..annotations.video_segment import Fault, VideoSegment, videos_of
from .feature_targets import (
    Targets,
    feature_lengths,
    with_features,
    write_targets,
)
from .files import Output, join_lines, npy_bytes

LMDB_FILE = 'data.mdb'
# Key of a row: frame of a video, counted from 1, at 30 frames per second.
LMDB_KEY = re.compile(r'(.+)_frame_(\d+)\.jpg')


class Part(NamedTuple):
    """Content of a data root from one annotation file or split.

    Attributes:
        segments: Annotated segments.
        list_name: Name of the list that gets the videos.
        files: Other files of the data root, by name.
    """
    segments: list[VideoSegment]
    list_name: str
    files: Mapping[str, bytes] = {}


def feature_options(folders: Mapping[str, str]) -> dict[str, dict]:
    """Return the options of all feature data sets."""
    return {f'--{modality}': dict(
        type=Path, metavar='FOLDER', help='features: a folder with '
        "<video>.npy, which is linked, or with RULSTM's data.mdb (default: "
        f'OUT/{folder})') for modality, folder in folders.items()} | {
            '--rate': dict(type=float, default=4,
                           help='steps per second (default: 4)'),
            '--keep-targets': dict(
                action='store_true', help='keep existing targets, such as '
                'released ones, and only write lists, classes and counts'),
            '--lenient': dict(
                action='store_true', help='skip invalid segments and videos '
                'without features, with a warning')}


def prepare_parts(args: argparse.Namespace, parts: Iterable[Part],
                  kinds: Sequence[Targets], folders: Mapping[str, str],
                  fault: Fault, *,
                  classes: Sequence[str] | None = None,
                  order: Sequence[str] = ()) -> None:
    """Write each part, and print a summary."""
    if not args.rate > 0:
        raise ValueError(f'--rate must be above 0, got {args.rate}')
    given = {modality: getattr(args, modality) for modality in folders}
    for modality, folder in given.items():
        if folder is not None and not folder.is_dir():
            raise ValueError(f'--{modality}: folder not found: {folder}')
    for part in parts:
        if not part.segments:
            raise ValueError(f'the list {part.list_name} has no segments')
        output = Output(args.out, args.force)
        places = place_features(
            output, given, folders, videos_of(part.segments), args.rate)
        lengths = feature_lengths(places)
        videos = with_features(part.segments, lengths, places[0], fault)
        print(part.list_name + ': ' + write_targets(
            output, part.segments, lengths, kinds, args.rate,
            lists={part.list_name: sorted(videos)}, classes=classes,
            files=part.files, order=order, keep_targets=args.keep_targets),
            flush=True)


def compare(videos: Collection[str], released: Collection[str],
            name: str) -> None:
    """Print how the videos of a list differ from the released protocol."""
    more = sorted({*videos} - {*released})
    less = sorted({*released} - {*videos})
    if more or less:
        changes = [f'lacks {", ".join(less)}'] * bool(less)
        changes += [f'has {", ".join(more)}'] * bool(more)
        print(f'{name}: unlike the released protocol, it '
              + ' and '.join(changes))


def has_features(args: argparse.Namespace, folders: Mapping[str, str]) -> bool:
    """Return True if the user gave features, or the data root has some."""
    return any(getattr(args, modality) or (args.out / folder).is_dir()
               for modality, folder in folders.items())


def prepare_segments(args: argparse.Namespace,
                     files: Mapping[str, tuple[bytes, list[VideoSegment]]],
                     classes: Sequence[str] = (),
                     class_file: str = 'label_map.txt') -> None:
    """Write lists of segments and the file of classes into the data root.

    ``files`` has the content of each list and its segments, by name.
    """
    output = Output(args.out, args.force)
    for name, (content, segments) in files.items():
        output.write(args.out / name, content)
        print(f'{args.out / name}: {count(segments, "segment")} of '
              + count(videos_of(segments), 'video'))
    if classes:
        output.write(args.out / class_file, join_lines(classes))


def place_features(output: Output, sources: Mapping[str, Path | None],
                   folders: Mapping[str, str], videos: Sequence[str],
                   rate: float) -> list[Path]:
    """Create the feature folders that configs read.

    A folder of ``.npy`` files is linked, unless it is already in place.
    Features of ``videos`` in RULSTM's LMDB are converted to ``.npy`` files
    with ``rate`` steps per second.

    Args:
        output: Files that this run creates, and their report.
        sources: Folder that the user gave for each modality, or None.
        folders: Folder name in the data root for each modality.

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
            write_lmdb_features(output, source, place, videos, rate)
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


def write_lmdb_features(output: Output, source: Path, place: Path,
                        videos: Sequence[str], rate: float) -> None:
    """Write ``<video>.npy`` for each video, unless it exists.

    Raises:
        ValueError: If the package lmdb is missing, the source is not an LMDB,
            or it lacks a video or has rows of different widths.
    """
    try:
        import lmdb
    except ImportError:
        raise ValueError(f'{source} is an LMDB, which needs the package lmdb: '
                         'pip install lmdb') from None
    try:
        env = lmdb.open(os.fspath(source), readonly=True, lock=False)
    except lmdb.Error as error:
        raise ValueError(f'{source} must be an LMDB: {error}') from None
    with env, env.begin(buffers=True) as transaction:
        for video in videos:
            path = place / f'{video}.npy'
            if path.is_file():
                output.kept += 1
                continue
            frames = read_frames(transaction, video)
            if not frames:
                raise ValueError(f'{source} lacks frames of {video}, such as '
                                 f'{video}_frame_0000000001.jpg')
            rows = latest_rows(frames, FPS / rate)
            if rows is None:
                raise ValueError(
                    f'{source}: the rows of {video} must have one width, and '
                    'fill at least one step')
            output.write(path, npy_bytes(rows))


def read_frames(transaction, video: str) -> dict[int, np.ndarray]:
    """Return the features of each available frame of a video, by number."""
    frames = {}
    cursor = transaction.cursor()
    cursor.set_range(f'{video}_frame_'.encode())
    for key, value in cursor:
        match = LMDB_KEY.fullmatch(bytes(key).decode())
        if match is None or match[1] != video:
            break
        frames[int(match[2])] = np.frombuffer(bytes(value), np.float32)
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
