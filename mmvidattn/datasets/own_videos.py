# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Labeled videos of one's own: a folder a class, or a csv; and their split."""
import math
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ..utils.checks import check_fraction
from .formats.own_csv import ALIASES
from .formats.video_segment import read_columns, read_rows, seconds

VIDEO_SUFFIXES = ('.avi', '.flv', '.m4v', '.mkv', '.mov', '.mp4', '.mpeg',
                  '.mpg', '.ts', '.webm', '.wmv')
COLUMNS = 'video', 'label', 'start', 'end', 'split', 'group'
SPLITS = dict(train='train', training='train', val='val', valid='val',
              validation='val', test='test', testing='test')
MAX_NAMED = 3


class OwnVideo(NamedTuple):
    """A labeled video, or a segment of one from ``start`` to ``end`` seconds.

    ``file`` is relative to the root. ``end`` is infinite where the csv has no
    end. ``split`` is train, val, test or empty; videos of one ``group`` (a
    person, a camera) stay on one side of a split, by default those of a file.
    """
    file: str
    label: str
    start: float = 0.
    end: float = math.inf
    split: str = ''
    group: str = ''

    @property
    def is_whole(self) -> bool:
        """Whether it is all of the file."""
        return self.start == 0 and self.end == math.inf


def read_own_videos(source: Path) -> tuple[Path, list[OwnVideo], list[str]]:
    """Read a folder with a folder for each class, or a csv.

    Args:
        source: Either. The folders of the classes may have folders in them.
            The columns of the csv are ``file`` and ``label``, and, of those
            that are there, ``start``, ``stop``, ``split`` and ``group``
            (``video`` and ``end`` do as well). Its files are relative to its
            own folder.

    Returns:
        The root that the files are relative to, the videos, and remarks on
        what was left out.

    Raises:
        ValueError: If there is nothing to train on, or the csv has a fault.
        FileNotFoundError: If there is no such folder or file.
    """
    if source.is_dir():
        return source, *_read_folder(source)
    if not source.is_file():
        raise FileNotFoundError(f'no folder or csv {source}')
    if source.suffix.lower() != '.csv':
        raise ValueError(
            f'{source} must be a folder with a folder of videos for each '
            'class, or a csv with columns file and label')
    return source.parent, *_read_csv(source)


def _read_folder(root: Path) -> tuple[list[OwnVideo], list[str]]:
    videos, remarks = [], []
    folders = sorted(path for path in root.iterdir()
                     if path.is_dir() and not path.name.startswith('.'))
    if folders and all(path.name.lower() in SPLITS for path in folders):
        raise ValueError(
            f'the folders in {root} are called '
            f'{some(path.name for path in folders)}, as splits and not as '
            'classes: write a csv with columns file, label and split')
    for folder in folders:
        found = sorted(path for path in folder.rglob('*')
                       if path.suffix.lower() in VIDEO_SUFFIXES
                       and path.is_file())
        if not found:
            remarks.append(f'the folder {folder.name} has no videos and is '
                           'left out')
        videos += [OwnVideo(path.relative_to(root).as_posix(), folder.name)
                   for path in found]
    stray = [path.name for path in sorted(root.iterdir())
             if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file()]
    if not videos:
        raise ValueError(
            f'no videos in folders of {root}: put those of each class into a '
            'folder with its name; their names end with one of '
            + ', '.join(VIDEO_SUFFIXES)
            + (f'. Those in {root} itself, such as {stray[0]}, have no class'
               if stray else ''))
    if stray:
        remarks.append(f'{count(stray, "video")} in {root} itself, in no '
                       f'folder of a class, left out: {some(stray)}')
    _check_names(videos, str(root))
    return videos, remarks


def _read_csv(path: Path) -> tuple[list[OwnVideo], list[str]]:
    header, _ = next(read_rows(path), ([], ''))
    names = [ALIASES.get(name, name) for name in header]
    if not {'video', 'label'} <= {*names}:
        raise ValueError(f'{path} must have columns file and label, got '
                         + (', '.join(header) or 'nothing'))
    unused = [old for old, name in zip(header, names) if name not in COLUMNS]
    remarks = [f'columns that are not used: {", ".join(unused)}'] * bool(
        unused)
    seen: dict[tuple, tuple[str, str]] = {}
    videos = []
    repeated = 0
    for row, where in read_columns(path, ()):
        row = {ALIASES.get(name, name): word for name, word in row.items()}
        video = _parse(row, where)
        key = video.file, video.start, video.end
        if key in seen:
            label, other = seen[key]
            if label != video.label:
                raise ValueError(f'{where}: {video.file} has the label '
                                 f'{video.label} here and {label} in {other}')
            repeated += 1
            continue
        seen[key] = video.label, where
        videos.append(video)
    if not videos:
        raise ValueError(f'{path} lists no videos')
    if repeated:
        verb = 'repeats' if repeated == 1 else 'repeat'
        remarks.append(
            f'left out: {count(repeated, "line")} that {verb} another one')
    _check_names(videos, str(path))
    _check_splits(videos, str(path))
    remarks += _torn(videos)
    return videos, remarks


def _parse(row: dict[str, str], where: str) -> OwnVideo:
    if not row['video'] or not row['label']:
        raise ValueError(f'{where}: file and label must not be empty')
    start = seconds(row['start'], where) if row.get('start') else 0.
    end = seconds(row['end'], where) if row.get('end') else math.inf
    if not 0 <= start < end:
        raise ValueError(f'{where}: must have 0 <= start < stop, got '
                         f'{start:g} to {end:g} s')
    split = row.get('split', '').lower()
    if split and split not in SPLITS:
        raise ValueError(f'{where}: split must be train, val or test, got '
                         f'{row["split"]!r}')
    return OwnVideo(row['video'], row['label'], start, end,
                    SPLITS.get(split, ''), row.get('group', ''))


def _check_names(videos: Sequence[OwnVideo], source: str) -> None:
    """Raise for names that a list, a line each, cannot hold."""
    for name in (name for video in videos for name in video[:2]):
        if name != name.strip() or len(name.splitlines()) > 1:
            raise ValueError(
                f'{source}: the name {name!r} must neither begin nor end with '
                'a blank nor have a line break: rename it')


def _check_splits(videos: Sequence[OwnVideo], source: str) -> None:
    with_split = [video for video in videos if video.split]
    if with_split and len(with_split) < len(videos):
        raise ValueError(
            f'{source}: {len(with_split)} of {len(videos)} lines have a '
            'split: give all of them one, or none')
    if with_split and 'train' not in {video.split for video in videos}:
        raise ValueError(f'{source}: no line has the split train')


def _torn(videos: Sequence[OwnVideo]) -> Iterator[str]:
    for what in 'file', 'group':
        splits = defaultdict(set)
        for video in videos:
            if name := getattr(video, what):
                splits[name].add(video.split)
        torn = [name for name, found in splits.items() if len(found) > 1]
        if torn:
            yield (f'{count(torn, what)} in more than one split, so that the '
                   f'figures are too good: {some(torn)}')


def split_videos(videos: Sequence[OwnVideo], share: float, seed: int
                 ) -> dict[str, list[OwnVideo]]:
    """Split videos into train, val and test.

    Splits that the videos name are kept; where they name no ``val``, it is
    taken from ``train``. All videos of a file, or of a group, stay together.
    Of each class about that share goes to ``val``, and one video at least if
    two files or groups have it; one stays in ``train``.

    Args:
        videos: Labeled videos.
        share: Of the videos, for validation, in [0, 1].
        seed: Which ones.

    Returns:
        The videos of each split that has any, in their order.
    """
    check_fraction(share=share)
    sides: dict[str, list[OwnVideo]] = {'train': [], 'val': [], 'test': []}
    for video in videos:
        sides[video.split or 'train'].append(video)
    if not sides['val'] and share:
        chosen = _choose(sides['train'], share, seed)
        sides['val'] = [video for video in sides['train']
                        if _group(video) in chosen]
        sides['train'] = [video for video in sides['train']
                          if _group(video) not in chosen]
    return {name: side for name, side in sides.items() if side}


def _group(video: OwnVideo) -> tuple[str, str]:
    return ('group', video.group) if video.group else ('file', video.file)


def _choose(videos: Sequence[OwnVideo], share: float,
            seed: int) -> set[tuple[str, str]]:
    """The groups for validation."""
    groups = defaultdict(Counter)
    for video in videos:
        groups[_group(video)][video.label] += 1
    left = Counter(label for counts in groups.values() for label in counts)
    total = Counter(video.label for video in videos)
    wanted = {label: max(1, round(share * number)) if left[label] > 1 else 0
              for label, number in total.items()}
    order = sorted(groups)
    random.Random(seed).shuffle(order)
    chosen: set[tuple[str, str]] = set()
    have: Counter = Counter()

    def take(key: tuple[str, str]) -> None:
        chosen.add(key)
        have.update(groups[key])
        left.subtract(groups[key].keys())

    def may_go(key: tuple[str, str]) -> bool:
        return key not in chosen and all(
            left[label] > 1 for label in groups[key])

    for key in order:
        gain = sum(
            abs(wanted[label] - have[label])
            - abs(wanted[label] - have[label] - number)
            for label, number in groups[key].items())
        if gain > 0 and may_go(key):
            take(key)
    # A class whose groups are all larger than its share.
    for label in sorted(wanted):
        if wanted[label] and not have[label]:
            some_of_it = [key for key in order
                          if label in groups[key] and may_go(key)]
            if some_of_it:
                take(min(some_of_it, key=lambda key: groups[key].total()))
    return chosen


def count(things: Collection | int, noun: str) -> str:
    """As in ``1 video``, ``3 videos``; ``things`` may be a number."""
    number = things if isinstance(things, int) else len(things)
    plural = f'{noun}es' if noun.endswith('s') else f'{noun}s'
    return f'{number} {noun if number == 1 else plural}'


def some(names: Iterable[str]) -> str:
    """The first names of many."""
    names = list(names)
    return ', '.join(names[:MAX_NAMED]) + ', ...' * (len(names) > MAX_NAMED)
