# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Split of labeled videos into training, validation and test."""
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..datasets.annotations.labeled_videos import LabeledVideo
from ..utils.files import hash_file
from ..utils.printable import count, first_few


def find_copies(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the first file with the content of each file.

    Symbolic links and different paths of one file have the same content, and
    so have copies.
    """
    paths = {name: os.path.realpath(root / name) for name in files}
    sizes = {path: os.path.getsize(path) for path in {*paths.values()}}
    numbers = Counter(sizes.values())
    # Files of different sizes need not be read.
    contents = {path: hash_file(path) if numbers[size] > 1 else path
                for path, size in sizes.items()}
    first: dict[str, str] = {}
    return {name: first.setdefault(contents[path], name)
            for name, path in paths.items()}


def describe_copies(copies: Mapping[str, str],
                    splits: Mapping[str, Iterable[str]]) -> list[str]:
    """Return remarks about files of :func:`find_copies`."""
    splits_of = defaultdict(set)
    for split, files in splits.items():
        for name in files:
            splits_of[copies[name]].add(split)
    remarks = []
    for is_spread, text in (
            (False, 'another one, kept in its split'),
            (True, 'a video in another of the given splits, so scores will '
             'be too high')):
        found = [f'{name} ({first})' for name, first in copies.items()
                 if name != first
                 and (len(splits_of[first]) > 1) == is_spread]
        if found:
            remarks.append(f'{count(found, "video")} with the content of '
                           f'{text}: {first_few(found)}')
    return remarks


def split_videos(videos: Sequence[LabeledVideo], share: float, seed: int,
                 copies: Mapping[str, str] | None = None,
                 with_test: bool = False) -> dict[str, list[LabeledVideo]]:
    """Split videos into train, val and test.

    Splits that the user set are kept. If no video has the split ``val``, about
    ``share`` of each class moves from ``train`` to ``val``. Videos with the
    same file, content or group stay in one split. ``train`` keeps a video of
    each class and, unless ``share`` is larger, more than half of the files;
    ``val`` gets a video of each class if possible.

    Args:
        videos: Labeled videos.
        share: Share of the videos for validation, in [0, 1].
        seed: Seed of the random choice.
        copies: Result of :func:`find_copies`. Defaults to no copies.
        with_test: If the user set no splits, move as many videos to ``test``
            as to ``val``. Defaults to False.

    Returns:
        Videos of each split, without empty splits.
    """
    sides: dict[str, list[LabeledVideo]] = {'train': [], 'val': [], 'test': []}
    for video in videos:
        sides[video.split or 'train'].append(video)
    files = len({video.file for video in sides['train']})
    # Files that may leave the training set.
    room = max((files - 1) // 2, int(share * files))
    wanted = ['val'] if share and not sides['val'] else []
    if with_test and wanted and not any(one.split for one in videos):
        wanted.append('test')
    for name in wanted:
        train = sides['train']
        units = _inseparable(train, copies or {})
        chosen = _choose(train, units, share, seed, room)
        for side, is_chosen in (name, True), ('train', False):
            sides[side] = [video for video, unit in zip(train, units)
                           if (unit in chosen) == is_chosen]
        room -= len({video.file for video in sides[name]})
    return {name: side for name, side in sides.items() if side}


def _inseparable(videos: Sequence[LabeledVideo], copies: Mapping[str, str]
                 ) -> list[str]:
    """Return each video's unit, a set of videos linked by files and groups.

    A unit is named by its smallest file or group.
    """
    units: dict[str, set[str]] = {}
    for video in videos:
        names = {f'file {copies.get(video.file, video.file)}'}
        if video.group:
            names.add(f'group {video.group}')
        unit = set().union(names, *(units.get(name, ()) for name in names))
        units |= dict.fromkeys(unit, unit)
    return [min(units[f'file {copies.get(video.file, video.file)}'])
            for video in videos]


def _choose(videos: Sequence[LabeledVideo], units: Sequence[str],
            share: float, seed: int, room: int) -> set[str]:
    """Choose the units for validation, with up to ``room`` files.

    Each class keeps a unit for training. Units that bring the classes closer
    to their share are taken first, then units of classes that lack one.
    """
    counts: dict[str, Counter] = defaultdict(Counter)
    files: dict[str, set[str]] = defaultdict(set)
    for video, unit in zip(videos, units):
        counts[unit][video.label] += 1
        files[unit].add(video.file)
    left = Counter(label for each in counts.values() for label in each)
    total = Counter(video.label for video in videos)
    target = {label: max(1, round(share * number)) if left[label] > 1 else 0
              for label, number in total.items()}
    order = sorted(counts)
    random.Random(seed).shuffle(order)
    chosen: set[str] = set()
    have: Counter = Counter()

    def gain(unit: str) -> int:
        return sum(abs(target[label] - have[label])
                   - abs(target[label] - have[label] - number)
                   for label, number in counts[unit].items())

    def lacks(unit: str) -> bool:
        return any(not have[label] for label in counts[unit])

    for is_wanted in lambda unit: gain(unit) > 0, lacks:
        for unit in order:
            if (unit not in chosen and len(files[unit]) <= room
                    and is_wanted(unit)
                    and all(left[label] > 1 for label in counts[unit])):
                chosen.add(unit)
                room -= len(files[unit])
                have.update(counts[unit])
                left.subtract(counts[unit].keys())
    return chosen
