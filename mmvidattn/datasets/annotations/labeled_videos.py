# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of a user's labeled videos: a folder per class, or a CSV file."""
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...utils.printable import count, first_few
from ..video_facts import VIDEO_SUFFIXES
from .video_segment import read_table, seconds

COLUMNS = 'video', 'label', 'start', 'end', 'split', 'group'
SPLITS = dict(train='train', training='train', val='val', valid='val',
              validation='val', test='test', testing='test')


class LabeledVideo(NamedTuple):
    """A labeled video, or a segment of one.

    Attributes:
        file: Path of the video, relative to the root.
        label: Class name.
        start: First second of the segment.
        end: Last second; infinite if the segment ends with the file.
        split: ``'train'``, ``'val'``, ``'test'`` or an empty string.
        group: Name of the person or camera. Videos of one group should all be
            in the same split.
    """
    file: str
    label: str
    start: float = 0.
    end: float = math.inf
    split: str = ''
    group: str = ''

    @property
    def is_whole(self) -> bool:
        """True if the segment covers the whole file."""
        return self.start == 0 and self.end == math.inf


def read_labeled_videos(source: Path, multi_label: bool = False,
                        columns: Mapping[str, str] | None = None,
                        fps: float | None = None, more: Sequence[Path] = ()
                        ) -> tuple[Path, list[LabeledVideo], list[str]]:
    """Read labeled videos from a folder or from CSV files.

    The source can be

    * a folder with one folder per class, which may have subfolders;
    * a folder of splits, such as ``train`` and ``val``, each with one folder
      per class;
    * a CSV file, separated by commas, semicolons or tabs. It must have the
      columns ``file`` (or ``video``) and ``label``, and may have ``start``,
      ``stop`` (or ``end``), ``split`` and ``group``. Its paths are relative
      to its folder.

    Args:
        source: The folder or CSV file.
        multi_label: Accept several lines with different labels for a video or
            segment of a CSV file. Defaults to False.
        columns: Columns of another program's table, see
            :func:`~.video_segment.read_table`.
        fps: Frames per second, if ``columns`` has frame numbers.
        more: Further CSV files. A line that occurs in several files is used
            once.

    Returns:
        Folder that the paths are relative to, the videos, and remarks about
        skipped entries and likely mistakes. A video with several labels has an
        entry for each.

    Raises:
        ValueError: If there are no videos, or the CSV file is invalid.
        FileNotFoundError: If the source does not exist.
    """
    if source.is_dir() and not more:
        if columns is not None:
            raise ValueError(f'columns needs a table, got the folder {source}')
        return source, *_read_folder(source)
    for path in source, *more:
        if path.is_dir():
            raise ValueError('several sources must be CSV files, got the '
                             f'folder {path}')
        if not path.is_file():
            raise FileNotFoundError(f'no folder or CSV file {path}')
        if columns is None and path.suffix.lower() not in ('.csv', '.tsv'):
            raise ValueError(
                f'{path} must be a folder with a folder of videos for each '
                'class, or a CSV file with columns file and label')
    return source.parent, *_read_csv([source, *more], multi_label, columns,
                                     fps)


def _read_folder(root: Path) -> tuple[list[LabeledVideo], list[str]]:
    videos, remarks, others = [], [], []
    folders = sorted(path for path in root.iterdir()
                     if path.is_dir() and not path.name.startswith('.'))
    if folders and all(path.name.lower() in SPLITS for path in folders):
        return _read_splits(root, folders)
    for folder in folders:
        found = [*folder.rglob('[!.]*')]
        files = _videos_in(found)
        others += [path.name for path in found
                   if path.is_file() and path not in files]
        if not files:
            remarks.append(f'the folder {folder.name} has no videos and is '
                           'left out')
        videos += [LabeledVideo(path.relative_to(root).as_posix(), folder.name)
                   for path in files]
    stray = [path.name for path in _videos_in(root.iterdir())]
    if not videos:
        raise ValueError(
            f'no videos in folders of {root}: put the videos of each class '
            'into a folder with its name. Supported suffixes: '
            + ', '.join(VIDEO_SUFFIXES)
            + (f'. Videos in {root} itself, such as {stray[0]}, belong to no '
               'class' if stray else ''))
    if others:
        remarks.append(f'{count(others, "file")} without the suffix of a '
                       f'video left out: {first_few(others)}')
    if stray:
        remarks.append(f'{count(stray, "video")} in {root} itself, outside '
                       f'of the class folders, left out: {first_few(stray)}')
    _check_names(videos, str(root))
    return videos, remarks


def _read_splits(root: Path, folders: Sequence[Path]
                 ) -> tuple[list[LabeledVideo], list[str]]:
    """Read a folder of splits, each with its class folders."""
    videos, remarks = [], []
    for folder in folders:
        split = SPLITS[folder.name.lower()]
        split_videos, folder_remarks = _read_folder(folder)
        videos += [video._replace(file=f'{folder.name}/{video.file}',
                                  split=split) for video in split_videos]
        remarks += folder_remarks
    _check_splits(videos, str(root))
    return videos, remarks


def _videos_in(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths
                  if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file())


def _read_csv(paths: Sequence[Path], multi_label: bool,
              columns: Mapping[str, str] | None, fps: float | None
              ) -> tuple[list[LabeledVideo], list[str]]:
    """Read CSV files, with paths relative to the folder of the first one."""
    seen: dict[tuple, tuple[str, str]] = {}
    videos, unused, numbers = [], [], []
    repeated = 0
    for path in paths:
        before = len(videos)
        for row, where in read_table(path, ('video', 'label'), columns, fps):
            unused += [name for name in row
                       if name not in COLUMNS and name not in unused]
            video = _parse(row, where)
            if len(paths) > 1:
                file = os.path.relpath(path.parent / video.file,
                                       paths[0].parent)
                video = video._replace(file=Path(file).as_posix())
            key = (video.file, video.start, video.end,
                   multi_label and video.label)
            if key in seen:
                label, first_place = seen[key]
                if label != video.label:
                    raise ValueError(
                        f'{where}: {video.file} has the label {video.label} '
                        f'here and {label} in {first_place}; several labels '
                        'need --multi-label')
                repeated += 1
                continue
            seen[key] = video.label, where
            videos.append(video)
        if len(videos) == before and not repeated:
            raise ValueError(f'{path} lists no videos')
        numbers.append(f'{len(videos) - before} from {path}')
    remarks = ['videos: ' + ', '.join(numbers)] * (len(paths) > 1)
    if unused:
        remarks.append(f'unused columns: {", ".join(unused)}')
    if repeated:
        remarks.append(f'left out: {count(repeated, "repeated line")}')
    names = ', '.join(map(str, paths))
    _check_names(videos, names)
    _check_splits(videos, names)
    remarks += _spread_over_splits(videos)
    return videos, remarks


def _parse(row: dict[str, str], where: str) -> LabeledVideo:
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
    # ./a.mp4 is a.mp4.
    return LabeledVideo(Path(row['video']).as_posix(), row['label'], start,
                        end, SPLITS.get(split, ''), row.get('group', ''))


def _check_names(videos: Sequence[LabeledVideo], source: str) -> None:
    """Raise a ``ValueError`` for a name that a video list cannot contain."""
    for name in (name for video in videos for name in video[:2]):
        if name != name.strip() or {'\n', '\r'} & {*name}:
            raise ValueError(
                f'{source}: the name {name!r} must not begin or end with a '
                'space, or contain a line break: rename it')


def _check_splits(videos: Sequence[LabeledVideo], source: str) -> None:
    with_split = [video for video in videos if video.split]
    if with_split and len(with_split) < len(videos):
        raise ValueError(
            f'{source}: {len(with_split)} of {len(videos)} lines have a '
            'split: set it on all lines or on none')
    if with_split and 'train' not in {video.split for video in videos}:
        raise ValueError(f'{source}: no video has the split train')


def _spread_over_splits(videos: Sequence[LabeledVideo]) -> Iterator[str]:
    """Yield a remark if files or groups occur in several splits."""
    for kind in 'file', 'group':
        splits = defaultdict(set)
        for video in videos:
            if name := getattr(video, kind):
                splits[name].add(video.split)
        spread = [name for name, used in splits.items() if len(used) > 1]
        if spread:
            yield (f'{count(spread, kind)} in more than one split, so scores '
                   f'will be too high: {first_few(spread)}')


def similar_names(kind: str, names: Iterable[str]) -> Iterator[str]:
    """Yield a remark about names that differ only in blanks or case."""
    groups = defaultdict(list)
    for name in sorted(names):
        groups[''.join(name.split()).casefold()].append(name)
    similar = [' and '.join(map(repr, group)) for group in groups.values()
               if len(group) > 1]
    if similar:
        yield (f'several names of a {kind} differ only in blanks or case: '
               f'{first_few(similar)}')
