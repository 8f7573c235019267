# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write the targets of each step of feature streams, and lists of videos."""
import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...utils.printable import count, first_few
from ..annotations.video_segment import (
    Fault,
    VideoSegment,
    describe,
    fit_to_videos,
    refuse,
    steps_of,
    videos_of,
)
from ..feature_streams import FeatureStreams, open_array
from .files import Output, join_lines, npy_bytes

BACKGROUND = 'background'


class Targets(NamedTuple):
    """Layout of one kind of target files.

    Attributes:
        folder: Name of the folder of the files.
        part: Part of the label: 'action', 'verb' or 'noun'.
        columns: Column of each label; column 0 is the background.
    """
    folder: str
    part: str
    columns: Mapping[int | str, int]

    @property
    def width(self) -> int:
        """Number of columns."""
        return 1 + max(self.columns.values(), default=0)

    def column(self, segment: VideoSegment) -> int:
        """Return the column of a segment."""
        return self.columns[segment.labels[self.part]]


def named_targets(classes: Sequence[str]) -> list[Targets]:
    """Return the layout of action targets; the first class is background."""
    return [Targets('target_perframe', 'action',
                    {name: i for i, name in enumerate(classes) if i})]


def numbered_targets(num_classes: Mapping[str, int]) -> list[Targets]:
    """Return the layout of targets whose labels are numbers."""
    folders = dict(action='target_perframe', verb='verb_perframe',
                   noun='noun_perframe')
    return [
        Targets(folders[part], part, {i: i + 1 for i in range(number)})
        for part, number in num_classes.items()]


def known_classes(segments: Iterable[VideoSegment], classes: Sequence[str],
                  fault: Fault = refuse) -> list[VideoSegment]:
    """Return the segments whose action is one of ``classes``."""
    known = []
    for segment in segments:
        label = segment.labels['action']
        if label in classes:
            known.append(segment)
            continue
        close = difflib.get_close_matches(str(label), classes, n=1)
        hint = f'; did you mean {close[0]!r}?' if close else ''
        fault(f'{segment.where}: label must be one of the {len(classes)} '
              f'classes, got {label!r}{hint}')
    return known


def feature_lengths(folders: Sequence[Path]) -> dict[str, int]:
    """Return the number of steps of each video with files in all folders."""
    names = []
    for folder in folders:
        names.append({path.stem for path in folder.glob('*.npy')})
        if not names[-1]:
            raise ValueError(f'features: there are no .npy files in {folder}')
    videos = sorted(set.intersection(*names))
    streams = FeatureStreams(videos, {str(path): path for path in folders})
    return dict(zip(videos, streams.lengths))


def stream_name(video: str) -> str:
    """Return the name of a video's files, as ``extract-features`` does."""
    path = Path(video).with_suffix('')
    return '_'.join(path.relative_to(path.anchor).parts)


def with_features(segments: Sequence[VideoSegment], lengths: Mapping[str, int],
                  folder: Path, fault: Fault = refuse) -> list[str]:
    """Return the names of videos that have segments and features."""
    videos = videos_of(segments)
    missing = [video for video in videos if video not in lengths]
    if missing:
        fault(f'{segments[0].where.rpartition(", ")[0]} has segments of '
              f'{first_few(missing)}, but their features are missing, such as '
              f'{folder / missing[0]}.npy '
              f'({len(missing)} of {len(videos)} videos)')
    return [video for video in videos if video in lengths]


def mark(segments: Iterable[VideoSegment], length: int, targets: Targets,
         rate: float) -> np.ndarray:
    """Return the targets of a video, ``(length, K)`` of 0 and 1.

    A step has the class of each segment that overlaps it. Other steps are
    background.
    """
    marked = np.zeros((length, targets.width), np.uint8)
    for segment in segments:
        first, end = steps_of(segment.start, segment.end, rate)
        marked[first:end, targets.column(segment)] = 1
    marked[:, 0] = ~marked.any(axis=1)
    return marked


def write_targets(output: Output, segments: Sequence[VideoSegment],
                  lengths: Mapping[str, int], kinds: Sequence[Targets],
                  rate: float, *, lists: Mapping[str, Sequence[str]],
                  classes: Sequence[str] | None = None,
                  files: Mapping[str, bytes] = {},
                  order: Sequence[str] = (),
                  background: Iterable[str] = (), keep_targets: bool = False
                  ) -> str:
    """Write targets of a run's videos, and lists and class counts.

    Args:
        output: Writer of the data root.
        segments: All segments of the run.
        lengths: Number of steps by video.
        kinds: Kinds of targets. Class counts use the first.
        rate: Steps per second.
        lists: Videos by name of the list.
        classes: Class names for ``classes.txt``, background first.
        files: Other files of the data root, by name.
        order: Order of the videos in lists; other videos follow.
        background: Videos without segments. Targets are written for them
            unless they already exist. A later run may overwrite them.
        keep_targets: Check the shapes of existing targets instead of writing
            targets.

    Returns:
        One-line summary.
    """
    # 1. Cut the segments, and sort them by video.
    segments = [one for one in segments if one.video in lengths]
    for kind in kinds:
        for one in segments:
            if kind.part not in one.labels:
                raise ValueError(f'{one.where} has no {kind.part}')
    fitted, counts = fit_to_videos(
        segments, {video: n / rate for video, n in lengths.items()})
    by_video: dict[str, list[VideoSegment]] = {}
    for segment in fitted:
        by_video.setdefault(segment.video, []).append(segment)
    videos = list(dict.fromkeys(v for names in lists.values() for v in names))
    # 2. Check the lists before writing the targets.
    contents = {output.root / name: content for name, content in files.items()}
    if classes is not None:
        contents[output.root / 'classes.txt'] = join_lines(classes)
    rank = {video: i for i, video in enumerate(order)}
    for name, names in lists.items():
        numbers = np.zeros(kinds[0].width, np.int64)
        for video in names:
            for segment in by_video.get(video, ()):
                numbers[kinds[0].column(segment)] += 1
        contents[output.root / f'{name}.txt'] = join_lines(
            sorted(names, key=lambda video: rank.get(video, len(rank))))
        contents[output.root / f'{name}_class_counts.txt'] = join_lines(
            numbers)
    for path, content in contents.items():
        output.check(path, content)
    # 3. Write the targets, then the lists.
    for kind in kinds:
        for video in dict.fromkeys([*videos, *background]):
            path = output.root / kind.folder / f'{video}.npy'
            if keep_targets:
                shape = open_array(path).shape
                # Targets may be one step longer than the features.
                if shape[1] != kind.width or not (
                        0 <= shape[0] - lengths[video] <= 1):
                    raise ValueError(
                        f'{path} must be targets of {lengths[video]} steps '
                        f'and {kind.width} classes, got {shape}')
                continue
            empty = npy_bytes(mark((), lengths[video], kind, rate))
            if video in videos:
                output.write(path, npy_bytes(mark(
                    by_video.get(video, ()), lengths[video], kind, rate)),
                    empty)
            elif path.is_file():
                output.kept += 1
            else:
                output.write(path, empty)
    for path, content in contents.items():
        output.write(path, content)
    list_texts = ', '.join(f'{name}.txt ({len(names)})'
                           for name, names in lists.items())
    notes = describe(counts)
    return (f'{output.root}: {count(videos, "video")}, '
            + count(segments, 'segment')
            + f' ({notes})' * bool(notes) + f'; lists: {list_texts}; '
            f'{count(output.written, "file")} written, {output.kept} already '
            'existed')
