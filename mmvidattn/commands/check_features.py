# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Check a dataset of feature streams, and report faults."""
import argparse
import json
import sys
from pathlib import Path

import numpy as np

from ..apis.runner import one_line_errors
from ..datasets.feature_streams import MAX_DIFFERENCE, open_array
from ..utils.lines import read_lines
from ..utils.printable import echo

BLOCK = 4096


class Folder:
    """Files of one modality, or of targets, for a list of videos.

    Args:
        path: Path of the folder.
        videos: Names of the videos.
        width: Expected number of columns. Defaults to the most common number.
        is_target: True for files of targets.
    """

    def __init__(self, path: Path, videos: list[str], width: int | None,
                 is_target: bool) -> None:
        self.path = path
        self.lengths: dict[str, int] = {}
        self.widths: dict[int, list[str]] = {}
        self.dtypes: set[str] = set()
        self.faults: list[str] = []
        for video in videos:
            self._check(video, is_target)
        expected = width or max(
            self.widths, key=lambda w: len(self.widths[w]), default=None)
        for actual, names in self.widths.items():
            if actual != expected:
                for name in names:
                    self.faults.append(
                        f'{path / name}.npy: width must be {expected}, got '
                        f'{actual}')

    def _check(self, video: str, is_target: bool) -> None:
        path = self.path / f'{video}.npy'
        try:
            array = open_array(path)
        except (ValueError, OSError) as error:
            self.faults.append(str(error))
            return
        self.lengths[video] = len(array)
        self.widths.setdefault(array.shape[1], []).append(video)
        self.dtypes.add(str(array.dtype))
        if not len(array):
            self.faults.append(f'{path}: no steps')
        for start in range(0, len(array), BLOCK):
            block = np.asarray(array[start:start + BLOCK])
            bad = ~np.isfinite(block).all(axis=1)
            if is_target:
                bad |= ~np.isin(block, (0, 1)).all(axis=1)
                bad |= ~block.any(axis=1)
            if bad.any():
                fault = ('targets must be 0 or 1, with a class in each step'
                         if is_target else 'nan or infinity')
                self.faults.append(f'{path}: {fault}, first in step '
                                   f'{start + bad.argmax()}')
                return

    def row(self, name: str) -> list[str]:
        lengths = [*self.lengths.values()]
        return [
            name, str(len(lengths)),
            '/'.join(map(str, sorted(self.widths))) or '-',
            ', '.join(sorted(self.dtypes)) or '-',
            f'{min(lengths)} to {max(lengths)}' if lengths else '-',
            str(sum(lengths)), str(len(self.faults))
        ]


def compare_lengths(folders: dict[str, Folder], videos: list[str],
                    durations: dict[str, float], rate: float) -> list[str]:
    """Return faults of videos whose files have a wrong length or rate.

    Files may differ by one step, because the dataset cuts all files of a video
    to the shortest.
    """
    faults = []
    for video in videos:
        by_folder = {name: folder.lengths[video]
                     for name, folder in folders.items()
                     if video in folder.lengths}
        lengths = by_folder.values()
        if max(lengths, default=0) - min(lengths, default=0) > MAX_DIFFERENCE:
            faults.append(f'{video}: lengths differ: ' + ', '.join(
                f'{name} {length}' for name, length in by_folder.items()))
        if video in durations and by_folder:
            length = next(iter(by_folder.values()))
            # The last step may be missing or incomplete.
            if abs(length - rate * durations[video]) > 1.5:
                faults.append(
                    f'{video}: {length} steps in {durations[video]:g} s are '
                    f'{length / durations[video]:.3g} Hz, expected {rate:g}')
    return faults


def table(rows: list[list[str]]) -> str:
    """Format rows as a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join(
        '  '.join(cell.ljust(width) for cell, width in zip(row, widths))
        .rstrip() for row in rows)


def read_videos(args: argparse.Namespace) -> list[str]:
    if not args.root.is_dir():
        raise ValueError(f'folder {args.root} does not exist')
    if not args.list:
        first = args.root / args.features[0]
        videos = sorted(path.stem for path in first.glob('*.npy'))
        if not videos:
            raise ValueError(f'found no .npy files in {first}')
        return videos
    videos = []
    for name in args.list:
        path = args.root / name
        if not path.is_file():
            raise ValueError(f'--list: file {path} does not exist')
        videos += filter(None, read_lines(path))
    if not videos:
        raise ValueError(f'--list {" ".join(args.list)} names no videos')
    return videos


def check(args: argparse.Namespace) -> list[str]:
    """Print the table, and return the faults."""
    if args.dims and len(args.dims) != len(args.features):
        raise ValueError('--dims must be one number for each of the '
                         f'{len(args.features)} --features, got '
                         f'{len(args.dims)}')
    if (args.rate is None) != (args.durations is None):
        raise ValueError('--rate and --durations need each other')
    videos = read_videos(args)
    num_classes = None
    if args.classes:
        path = args.root / args.classes
        if not path.is_file():
            raise ValueError(f'--classes: file {path} does not exist')
        num_classes = sum(
            bool(line.strip()) for line in read_lines(path))
    durations = {}
    if args.durations:
        durations = json.loads(args.durations.read_text())
    folders = {
        name: Folder(args.root / name, videos, width, False)
        for name, width in zip(args.features,
                               args.dims or [None] * len(args.features))
    }
    for name in args.targets:
        folders[name] = Folder(
            args.root / name, videos,
            num_classes if name == args.targets[0] else None, True)
    echo(table([['folder', 'videos', 'width', 'type', 'steps', 'total',
                 'faults'],
                *(folder.row(name) for name, folder in folders.items())]))
    faults = [fault for folder in folders.values() for fault in folder.faults]
    return faults + compare_lengths(folders, videos, durations, args.rate)


def run(args: argparse.Namespace) -> None:
    with one_line_errors():
        faults = check(args)
    for fault in faults:
        echo(fault)
    echo(f'{len(faults)} faults' if faults else 'no faults')
    sys.exit(bool(faults))
