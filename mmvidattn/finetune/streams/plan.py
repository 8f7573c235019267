# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plan of a run on untrimmed videos: check, match and split them."""
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...datasets.annotations.custom.labeled_videos import (
    SPLITS,
    LabeledVideo,
    count,
    similar_names,
    some,
)
from ...datasets.annotations.custom.segment_csv import (
    read_segment_csv,
    write_segment_csv,
)
from ...datasets.annotations.formats import (
    Annotations,
    VideoFolder,
    read_annotations,
)
from ...datasets.annotations.formats.base import distinct_ids, merge
from ...datasets.annotations.video_segment import (
    VideoSegment,
    checked,
    describe,
    fit_to_videos,
    read_table,
)
from ...datasets.prepare.feature_targets import BACKGROUND
from ...datasets.video_facts import VideoFacts
from ...utils.files import write_atomically
from ...utils.printable import echo
from ..options import FineTuneOptions
from ..plan import check_videos, print_unreadable
from ..split import describe_copies, find_copies, split_videos

# The model reads at least this number of frames of a short event, the 10th
# percentile of the durations, within the limits of the frame rate.
FRAMES = 20
RATES = 2., 25.
# A class with fewer training events triggers a warning.
FEW = 10


class StreamPlan(NamedTuple):
    """Untrimmed videos of a run.

    Attributes:
        root: Folder that the videos are relative to.
        splits: Videos of ``train``, ``val`` and ``test``, relative to
            ``root``. Empty splits are left out.
        segments: Events of all videos.
        classes: Class names, the background first.
        facts: Length, frame rate and size of each video.
    """
    root: Path
    splits: dict[str, list[str]]
    segments: list[VideoSegment]
    classes: list[str]
    facts: dict[str, VideoFacts]

    @property
    def durations(self) -> list[float]:
        """Seconds of each event."""
        return [one.end - one.start for one in self.segments]

    @property
    def frame_rate(self) -> float:
        """Frames per second that a model of pixels reads, with 2 digits."""
        fps = statistics.median(one.fps for one in self.facts.values())
        short = float(np.percentile(self.durations, 10))
        rate = min(max(FRAMES / short, RATES[0]), RATES[1], fps)
        return float(f'{rate:.2g}')

    @property
    def frames(self) -> int:
        """Frames of all training videos at :attr:`frame_rate`."""
        return round(self.seconds('train') * self.frame_rate)

    def seconds(self, *splits: str) -> float:
        """Return the length of all videos of the splits."""
        return sum(self.facts[video].duration for split in splits
                   for video in self.splits.get(split, ()))

    def of(self, split: str) -> list[VideoSegment]:
        """Return the events of a split."""
        videos = {*self.splits[split]}
        return [one for one in self.segments if one.video in videos]

    def write_lists(self, folder: Path) -> None:
        """Write the events, videos and class names to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for split, videos in self.splits.items():
            write_segment_csv(self.of(split), folder / f'{split}.csv')
            write_atomically(folder / f'{split}_videos.txt',
                             '\n'.join([*videos, '']).encode())
        write_atomically(folder / 'classes.txt',
                         '\n'.join([*self.classes, '']).encode())


def read_events(out: Path, split: str) -> list[VideoSegment]:
    """Read the events of a split from a work directory."""
    return read_segment_csv(out / f'data/{split}.csv')


def read_source(source: Path, root: Path, **table: Any) -> Annotations:
    """Read the events of a user, with videos as paths relative to ``root``.

    Videos that the folder lacks are left out.

    Args:
        source: File of annotations.
        root: Folder of the videos.
        table: ``columns`` and ``fps`` of :func:`read_annotations`.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the annotations are invalid, the folder has none of the
            videos, or an event has no end or no class.
    """
    if not source.exists():
        raise FileNotFoundError(f'no annotations {source}')
    found = read_annotations(source, videos=root, **table)
    if not found.segments:
        raise ValueError(f'{source} lists no events')
    found.segments = checked(one for one in found.segments
                             if one.video not in found.missing)
    if not found.segments:
        raise ValueError(
            f'{root} has none of the {len(found.missing)} annotated videos, '
            f'such as {some(found.missing)}')
    for one in found.segments:
        label = one.labels.get('action')
        if not label or label == BACKGROUND:
            raise ValueError(
                f'{one.where}: an event must have a class name other than '
                f'{BACKGROUND!r}, got {label!r}')
    return found


def read_sources(sources: Sequence[Path], root: Path,
                 **table: Any) -> Annotations:
    """Read the events of several files; equal ones are used once.

    Args:
        sources: Files of annotations.
        root: Folder of the videos.
        table: ``columns`` and ``fps`` of :func:`read_annotations`.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a file is invalid (:func:`read_source`), or only some
            events have a subset.
    """
    parts = {source: read_source(source, root, **table)
             for source in sources}
    if len(parts) == 1:
        return next(iter(parts.values()))
    found = merge(parts)
    found.missing = sorted({name for part in parts.values()
                            for name in part.missing})
    distinct, numbers = {}, []
    for source, part in parts.items():
        before = len(distinct)
        for one in part.segments:
            distinct.setdefault((one.video, one.start, one.end, one.subset,
                                 one.labels['action']), one)
        numbers.append(f'{len(distinct) - before} from {source}')
    repeated = len(found.segments) - len(distinct)
    found.segments = distinct_ids(distinct.values())
    echo('events: ' + ', '.join(numbers)
         + f'; left out: {count(repeated, "repeated event")}')
    with_subset = sum(one.subset != 'all' for one in found.segments)
    if 0 < with_subset < len(found.segments):
        raise ValueError(
            f'{with_subset} of {len(found.segments)} events have a subset: '
            'set it in all files or in none')
    return found


def count_entries(options: FineTuneOptions) -> int:
    """Return the number of annotated events."""
    return len(read_sources(options.sources, options.videos,
                            columns=options.columns,
                            fps=options.fps).segments)


def make_stream_plan(options: FineTuneOptions) -> StreamPlan:
    """Read, check and split the videos, and print a summary.

    Raises:
        ValueError: If the annotations are invalid, no video can be read, or a
            class lacks training events.
    """
    root, columns = options.videos, options.columns
    found = read_sources(options.sources, root, columns=columns,
                         fps=options.fps)
    names = [name for name in found.videos if name not in found.missing]
    facts, bad = check_videos(root, names, options)
    segments, counts = fit_to_videos(
        [one for one in found.segments if one.video in facts],
        {name: one.duration for name, one in facts.items()})
    if not segments:
        raise ValueError('no event starts within a readable video')
    _print_summary(root, segments, facts)
    print_unreadable(bad)
    if counts:
        echo(f'events: {describe(counts)}')
    copies = find_copies(root, facts)
    splits = split_streams(
        segments, read_groups(options.sources, root, columns),
        options.val_share, options.seed, copies)
    # Listed videos without events are background of their subset, or belong
    # to the split of their copy.
    used = {video for side in splits.values() for video in side}
    split_of = {copies[video]: split for split, side in splits.items()
                for video in side}
    splits.setdefault('train', [])
    for name in names:
        if name in facts and name not in used:
            subset = (found.videos[name].subset or 'train').lower()
            split = split_of.setdefault(copies[name],
                                        SPLITS.get(subset, 'train'))
            side = splits.get(split)
            if side is None:
                found.remarks.append(f'{name} left out: no video of the '
                                     f'subset {subset} has events')
            else:
                side.append(name)
    echo('; '.join(f'{name}: {count(side, "video")}'
                   for name, side in splits.items()))
    classes = sorted({one.labels['action'] for one in segments})
    plan = StreamPlan(root, splits, segments, [BACKGROUND, *classes], facts)
    remarks = [*found.remarks, *describe_copies(copies, splits)]
    remarks += [one for one in similar_names('class', classes)
                if one not in remarks]
    if found.missing:
        remarks.append(
            f'{count(found.missing, "annotated video")} left out, because '
            f'{root} lacks them: {some(found.missing)}')
    for remark in remarks + find_warnings(plan):
        echo(f'note: {remark}')
    return plan


def read_groups(sources: Sequence[Path], root: Path,
                columns: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the group of each video, from the column ``group`` of CSV files.

    Raises:
        ValueError: If a video has two groups.
    """
    groups: dict[str, str] = {}
    folder = VideoFolder(root)
    for source in sources:
        if columns is None and source.suffix.lower() not in ('.csv', '.tsv'):
            continue
        for row, where in read_table(source, ('video', ), columns):
            video, group = folder.find(row['video']), row.get('group')
            if video and group and groups.setdefault(video, group) != group:
                raise ValueError(f'{where}: the group of {video} must be '
                                 f'{groups[video]}, got {group}')
    return groups


def split_streams(segments: Sequence[VideoSegment], groups: dict[str, str],
                  share: float, seed: int,
                  copies: Mapping[str, str] | None = None
                  ) -> dict[str, list[str]]:
    """Split videos into train, val and test.

    Only videos with events are split. Subsets of the annotations are kept if
    all of them are named train, val or test. Otherwise, about ``share`` of the
    events of each class are used for validation, and as many for the test.
    Videos of a group and copies (:func:`~..split.find_copies`) stay together.

    Returns:
        Videos of each split, without empty splits.
    """
    subsets = {one.subset.lower() for one in segments}
    is_split = subsets <= {*SPLITS}
    events = [LabeledVideo(
        one.video, one.labels['action'], one.start, one.end,
        SPLITS[one.subset.lower()] if is_split else '',
        groups.get(one.video, '')) for one in segments]
    sides = split_videos(events, share, seed, copies)
    if not is_split and 'val' in sides:
        again = split_videos(sides['train'], share, seed, copies)
        sides = dict(train=again['train'], val=sides['val'],
                     test=again.get('val', []))
    splits = {name: list(dict.fromkeys(one.file for one in side))
              for name, side in sides.items() if side}
    for video in splits.get('train', ()):
        for name in 'val', 'test':
            if video in splits.get(name, ()):
                raise ValueError(f'{video} must have one subset, got train '
                                 f'and {name}')
    return splits


def find_warnings(plan: StreamPlan) -> list[str]:
    """Return warnings about small sets and missing splits.

    Raises:
        ValueError: If a class has no training events.
    """
    if not plan.splits.get('train'):
        raise ValueError('no video has the subset train')
    counts = {name: Counter(one.labels['action'] for one in plan.of(name))
              for name in plan.splits}
    classes = plan.classes[1:]
    unseen = [name for name in classes if not counts['train'][name]]
    if unseen:
        raise ValueError(f'{count(unseen, "class")} without training events: '
                         f'{some(unseen)}')
    warnings = []
    few = [f'{name} ({counts["train"][name]})' for name in classes
           if counts['train'][name] < FEW]
    if few:
        warnings.append(f'{count(few, "class")} with fewer than {FEW} '
                        f'training events: {some(few)}')
    if 'val' not in plan.splits:
        warnings.append('too few videos for validation: the last checkpoint '
                        'is kept, and the thresholds are not tuned')
    if 'test' not in plan.splits:
        warnings.append(
            'no test videos: the metrics are of the validation videos, whose '
            'thresholds are tuned, and therefore too high'
            if 'val' in plan.splits else 'no test videos: no metrics')
    for name in 'val', 'test':
        lacking = [label for label in classes
                   if name in plan.splits and not counts[name][label]]
        if lacking:
            warnings.append(f'no {name} events of {some(lacking)}')
    return warnings


def _print_summary(root: Path, segments: Sequence[VideoSegment],
                   facts: dict[str, VideoFacts]) -> None:
    """Print classes and durations."""
    total = sum(one.duration for one in facts.values())
    echo(f'{root}: {count(segments, "event")} in {count(facts, "video")} of '
         f'{total / 60:.1f} minutes')
    labels = Counter(one.labels['action'] for one in segments)
    for name, number in sorted(labels.items()):
        seconds = [one.end - one.start for one in segments
                   if one.labels['action'] == name]
        echo(f'  {name}: {number}, {min(seconds):.1f} to {max(seconds):.1f} s,'
             f' {100 * sum(seconds) / total:.0f} % of the time')
