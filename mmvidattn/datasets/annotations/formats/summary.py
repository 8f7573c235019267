# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Summary of annotations, and comparison with the videos."""
from collections.abc import Mapping, Sequence

from ....utils.printable import count, first_few, format_table
from ..video_segment import VideoSegment
from .base import Annotations, VideoInfo

COLUMNS = ('segments', 'videos', 'seconds', 'shortest', 'mean', 'longest',
           'points', 'open ends')
# Difference in seconds that rounding explains.
LENGTH = 1.


def summarize(annotations: Annotations) -> list[str]:
    """Return a table of the classes, and lines about subsets and overlaps.

    The verbs and nouns of a csv count as one label.
    """
    segments = [one if 'action' in one.labels else one._replace(labels=dict(
        action=' '.join(map(str, one.labels.values()))))
        for one in annotations.segments]
    classes: dict[str, list[VideoSegment]] = {}
    for one in segments:
        classes.setdefault(one.label, []).append(one)
    rows = [('class', *COLUMNS)]
    rows += [(label, *_statistics(group))
             for label, group in sorted(classes.items())]
    rows.append(('all', *_statistics(segments)))
    lines = format_table(rows)
    groups = annotations.by_video()
    empty = sum(not group for group in groups.values())
    if empty:
        lines.append(f'{empty} of {len(groups)} videos have no segments')
    lines += _named([f'{one.video} at {one.start:g} s' for one in segments
                     if one.is_point], 'segment', 'without length')
    subsets: dict[str, set[str]] = {}
    for one in segments:
        subsets.setdefault(one.subset, set()).add(one.video)
    if {*subsets} - {'all'}:
        lines.append('subsets: ' + ', '.join(
            f'{name} ({count(videos, "video")})'
            for name, videos in sorted(subsets.items())))
    lines += _named([video for video in groups if sum(
        video in videos for videos in subsets.values()) > 1],
        'video', 'in several subsets')
    times = [one[1:4] for one in segments if not one.is_open]
    equal = len(times) - len({*times})
    if equal:
        lines.append(
            f'{count(equal, "segment")} with the same times as another one')
    overlaps = 0
    for group in groups.values():
        last = 0.
        for one in sorted(group, key=lambda one: one.start):
            if not one.is_open:
                overlaps += one.start < last
                last = max(last, one.end)
    if overlaps:
        lines.append(
            f'{count(overlaps, "segment")} starting during another one')
    return lines


def _statistics(segments: Sequence[VideoSegment]) -> list[str]:
    lengths = [one.end - one.start for one in segments
               if not (one.is_point or one.is_open)]
    shown = [f'{value:.1f}' for value in (
        sum(lengths), min(lengths), sum(lengths) / len(lengths),
        max(lengths))] if lengths else ['-'] * 4
    return [str(len(segments)), str(len({one.video for one in segments})),
            *shown, str(sum(one.is_point for one in segments)),
            str(sum(one.is_open for one in segments))]


def compare(annotations: Annotations,
            known: Mapping[str, VideoInfo]) -> list[str]:
    """Return a line for each kind of difference from the video files.

    Args:
        annotations: Annotations whose videos have the names of ``known``.
        known: Facts of each video file.
    """
    lengths = [f'{name} ({info.duration:.1f} instead of '
               f'{known[name].duration:.1f} s)'
               for name, info in annotations.videos.items()
               if name in known and info.duration
               and abs(info.duration - known[name].duration) > LENGTH]
    after = []
    for one in annotations.segments:
        last = one.start if one.is_open else one.end
        info = known.get(one.video)
        # The duration of the last frame is not always counted.
        if info and last > info.duration + 1 / info.fps:
            after.append(f'{one.video} ({last:.2f} of {info.duration:.2f} s)')
    return [*_named(annotations.missing, 'video', 'missing'),
            *_named(lengths, 'video', 'of another length than stated'),
            *_named(after, 'segment', 'after the end of its video')]


def _named(names: Sequence[str], noun: str, what: str) -> list[str]:
    """Return a line about these names, if there are any."""
    return [f'{count(names, noun)} {what}: {first_few(names)}'] * bool(names)
