# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of the annotated events of untrimmed videos."""
from pathlib import Path

from ..datasets.annotations.formats import (
    Annotations,
    VideoFolder,
    read_annotations,
)
from ..datasets.annotations.formats.base import merge
from ..datasets.annotations.labeled_videos import SPLITS, LabeledVideo
from ..datasets.annotations.video_segment import read_table
from ..datasets.prepare.feature_targets import BACKGROUND
from ..utils.printable import count, first_few
from .options import FineTuneOptions


def read_events(options: FineTuneOptions
                ) -> tuple[list[LabeledVideo], dict[str, str], list[str]]:
    """Read the events of all sources; equal ones are used once.

    Subsets of the annotations are kept if they are named train, val or test.

    Returns:
        Events in videos relative to ``options.videos``, the subset of each
        listed video that the folder has, and remarks.

    Raises:
        FileNotFoundError: If a file does not exist.
        ValueError: If a file is invalid, or only some of its subsets are.
    """
    parts = {source: _read_source(source, options)
             for source in options.sources}
    found = merge(parts)
    missing = sorted({name for part in parts.values()
                      for name in part.missing})
    segments = found.segments
    with_subset = sum(one.subset != 'all' for one in segments)
    if 0 < with_subset < len(segments):
        raise ValueError(
            f'{with_subset} of {len(segments)} events have a subset: '
            'set it in all files or in none')
    others = [one for one in segments if one.subset.lower() not in SPLITS]
    if 0 < len(others) < len(segments):
        raise ValueError(f'{others[0].where}: subset must be train, val or '
                         f'test, got {others[0].subset!r}')
    groups = _read_groups(options)
    events: dict[LabeledVideo, None] = {}
    numbers = []
    for source, part in parts.items():
        before = len(events)
        events |= dict.fromkeys(LabeledVideo(
            one.video, one.labels['action'], one.start, one.end,
            SPLITS.get(one.subset.lower(), ''),
            groups.get(one.video, '')) for one in part.segments)
        numbers.append(f'{len(events) - before} from {source}')
    remarks = found.remarks
    repeated = len(segments) - len(events)
    if len(parts) > 1 or repeated:
        remarks.append(f'events: {", ".join(numbers)}; left out: '
                       f'{count(repeated, "repeated event")}')
    if with_subset and others:
        remarks.append(f'the subset {others[0].subset} is not train, val or '
                       'test: the events are split at random')
    if missing:
        remarks.append(
            f'{count(missing, "annotated video")} left out, because '
            f'{options.videos} lacks them: {first_few(missing)}')
    return [*events], {
        name: (info.subset or 'train').lower()
        for name, info in found.videos.items() if name not in missing
    }, remarks


def _read_source(source: Path, options: FineTuneOptions) -> Annotations:
    """Read the events of a file.

    Videos that the folder lacks, and events without a length or an end, are
    left out.
    """
    if not source.exists():
        raise FileNotFoundError(f'no annotations {source}')
    found = read_annotations(source, videos=options.videos,
                             columns=options.columns, fps=options.fps,
                             tiers=options.tiers)
    segments = [one for one in found.segments
                if one.video not in found.missing]
    # False for an unknown end.
    found.segments = [one for one in segments if one.start < one.end]
    if not found.segments:
        reason = ''
        if found.missing:
            reason = f': {options.videos} lacks {first_few(found.missing)}'
        elif segments:
            reason = f': {count(segments, "event")} without a length'
        raise ValueError(f'{source} lacks events to learn{reason}')
    if empty := [f'{one.video} at {one.start:g} s' for one in segments
                 if not one.start < one.end]:
        found.remarks.append(f'{count(empty, "event")} without a length or an '
                             f'end left out: {first_few(empty)}')
    for one in found.segments:
        label = one.labels.get('action')
        if not label or label == BACKGROUND:
            raise ValueError(
                f'{one.where}: an event must have a class name other than '
                f'{BACKGROUND!r}, got {label!r}')
    return found


def _read_groups(options: FineTuneOptions) -> dict[str, str]:
    """Return the group of each video, from the column ``group`` of CSV files.

    Raises:
        ValueError: If a video has two groups.
    """
    groups: dict[str, str] = {}
    folder = VideoFolder(options.videos)
    for source in options.sources:
        if options.columns is None and source.suffix.lower() not in (
                '.csv', '.tsv'):
            continue
        for row, where in read_table(source, ('video', ), options.columns):
            video, group = folder.find(row['video']), row.get('group')
            if video and group and groups.setdefault(video, group) != group:
                raise ValueError(f'{where}: the group of {video} must be '
                                 f'{groups[video]}, got {group}')
    return groups
