# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Split of labeled videos into training, validation and test."""
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, eye_array, hstack
from scipy.sparse.csgraph import connected_components

from ..datasets.annotations.custom.labeled_videos import (
    LabeledVideo,
    count,
    some,
)
from ..utils.arguments import Fraction, check_arguments
from ..utils.files import hash_file


def find_copies(root: Path, files: Iterable[str]) -> dict[str, str]:
    """Return the first file with the content of each file.

    Symbolic links and different paths of one file have the same content, and
    so have copies.

    Args:
        root: Folder that the files are relative to.
        files: Existing files.
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
    """Return remarks about files with the content of another one.

    Args:
        copies: Result of :func:`find_copies`.
        splits: Files of each split.
    """
    pairs = [f'{name} ({first})' for name, first in copies.items()
             if first != name]
    if not pairs:
        return []
    remarks = [f'{count(pairs, "video")} with the content of another one, '
               f'kept in its split: {some(pairs)}']
    names, used = defaultdict(set), defaultdict(set)
    for split, files in splits.items():
        for name in files:
            names[copies[name]].add(name)
            used[copies[name]].add(split)
    spread = [' and '.join(sorted(names[first])) for first in names
              if len(names[first]) > 1 and len(used[first]) > 1]
    if spread:
        remarks = [
            f'{count(pairs, "video")} with the content of another one: '
            f'{some(pairs)}',
            f'{count(spread, "video")} with copies in more than one of the '
            f'given splits, so scores will be too high: {some(spread)}']
    return remarks


@check_arguments
def split_videos(videos: Sequence[LabeledVideo], share: Fraction, seed: int,
                 copies: Mapping[str, str] | None = None
                 ) -> dict[str, list[LabeledVideo]]:
    """Split videos into train, val and test.

    Splits that the user set are kept. If no video has the split ``val``, about
    ``share`` of each class moves from ``train`` to ``val``. Videos with the
    same file, content or group stay in one split. ``train`` keeps a video of
    each class, and ``val`` gets a video of each class if possible.

    Args:
        videos: Labeled videos.
        share: Share of the videos for validation, in [0, 1].
        seed: Seed of the random choice.
        copies: Result of :func:`find_copies`. Defaults to no copies.

    Returns:
        Videos of each split, without empty splits.
    """
    sides: dict[str, list[LabeledVideo]] = {'train': [], 'val': [], 'test': []}
    for video in videos:
        sides[video.split or 'train'].append(video)
    train = sides['train']
    if train and share and not sides['val']:
        units = _inseparable(train, copies or {})
        chosen = _choose(train, units, share, seed)
        sides['val'] = [video for video, unit in zip(train, units)
                        if unit in chosen]
        sides['train'] = [video for video, unit in zip(train, units)
                          if unit not in chosen]
    return {name: side for name, side in sides.items() if side}


def _inseparable(videos: Sequence[LabeledVideo], copies: Mapping[str, str]
                 ) -> list[tuple[str, str]]:
    """Return each video's unit, a set of videos linked by files and groups.

    A unit is named by its smallest (kind, name).
    """
    files = [('file', copies.get(video.file, video.file)) for video in videos]
    keys = [('group', video.group) if video.group else file
            for video, file in zip(videos, files)]
    nodes: dict[tuple[str, str], int] = {}
    links = [(nodes.setdefault(file, len(nodes)),
              nodes.setdefault(key, len(nodes)))
             for file, key in zip(files, keys)]
    graph = coo_array((np.ones(len(links)), tuple(zip(*links))),
                      shape=(len(nodes), len(nodes)))
    _, numbers = connected_components(graph, directed=False)
    numbers = [numbers[nodes[key]] for key in keys]
    names: dict[int, tuple[str, str]] = {}
    for number, key in zip(numbers, keys):
        names[number] = min(key, names.get(number, key))
    return [names[number] for number in numbers]


def _choose(videos: Sequence[LabeledVideo], units: Sequence[tuple[str, str]],
            share: float, seed: int) -> set[tuple[str, str]]:
    """Choose the units for validation."""
    counts: dict[tuple[str, str], Counter] = defaultdict(Counter)
    for video, unit in zip(videos, units):
        counts[unit][video.label] += 1
    left = Counter(label for each in counts.values() for label in each)
    total = Counter(video.label for video in videos)
    target = {label: max(1, round(share * number)) if left[label] > 1 else 0
              for label, number in total.items()}
    order = sorted(counts)
    random.Random(seed).shuffle(order)
    chosen: set[tuple[str, str]] = set()
    have: Counter = Counter()
    for unit in order:
        gain = sum(
            abs(target[label] - have[label])
            - abs(target[label] - have[label] - number)
            for label, number in counts[unit].items())
        if gain > 0 and all(left[label] > number
                            for label, number in counts[unit].items()):
            chosen.add(unit)
            have.update(counts[unit])
            left.subtract(counts[unit].keys())
    if all(have[label] for label in target if target[label]):
        return chosen
    is_chosen = np.array([unit in chosen for unit in order])
    is_chosen = _cover_classes([counts[unit] for unit in order], is_chosen)
    return {unit for unit, taken in zip(order, is_chosen) if taken}


def _cover_classes(counts: Sequence[Counter],
                   is_chosen: np.ndarray) -> np.ndarray:
    """Change a choice of units so that it covers as many classes as possible.

    If several choices cover the same number of classes, return the choice that
    moves the fewest videos.

    Args:
        counts: Videos of each class in each of the U units.
        is_chosen: Units chosen for validation, bool ``(U,)``; each class has a
            unit that is not chosen.

    Returns:
        New choice, bool ``(U,)``; again, each class has a unit that is not
        chosen.
    """
    labels = {label: i for i, label in enumerate(sorted(set().union(*counts)))}
    entries = [(labels[label], i) for i, each in enumerate(counts)
               for label in each]
    shape = len(labels), len(counts)
    has = coo_array((np.ones(len(entries)), tuple(zip(*entries))), shape)
    # Variables: one per unit (chosen or not), and one per class (uncovered or
    # not).
    sizes = np.array([each.total() for each in counts])
    cost = np.concatenate([np.where(is_chosen, -sizes, sizes),
                           np.full(shape[0], 1 + sizes.sum())])
    covered = LinearConstraint(hstack([has, eye_array(shape[0])]), lb=1)
    kept = LinearConstraint(
        hstack([has, coo_array((shape[0], shape[0]))]),
        ub=np.asarray(has.sum(axis=1)) - 1)
    solution = milp(cost, constraints=[covered, kept], bounds=Bounds(0, 1),
                 integrality=np.ones(len(cost)))
    return solution.x[:shape[1]] > 0.5
