# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Content of annotations that a format cannot express."""
from collections.abc import Callable, Sequence

from ..video_segment import VideoSegment
from .base import (
    Annotations,
    Format,
    FrameRate,
    by_video,
    frames_of,
    is_open,
    is_point,
)

# For each kind of content: the test of a segment, and the consequence.
LOSSES: dict[str, tuple[Callable[[VideoSegment], bool], str]] = {
    'scores': (lambda one: one.score is not None,
               'cannot express scores: left out'),
    'subsets': (lambda one: one.subset != 'all',
                'cannot express subsets: left out'),
    'points': (is_point, 'cannot express point events: they get the '
               'shortest possible duration'),
}


def describe_losses(annotations: Annotations, kind: Format,
                    frame_rate: FrameRate) -> list[str]:
    """Return a line for each kind of content that a format cannot express.

    Args:
        annotations: Content to write.
        kind: The format.
        frame_rate: Frame rate of each video, for formats that count frames.
    """
    lines = []
    for name, (has, consequence) in LOSSES.items():
        number = sum(map(has, annotations.segments))
        if number and name in kind.lacks:
            lines.append(f'{kind.title} {consequence} ({number} of '
                         f'{len(annotations.segments)} segments)')
    groups = by_video(annotations)
    if 'empty videos' in kind.lacks:
        number = sum(not group for group in groups.values())
        if number:
            lines.append(f'{kind.title} cannot list videos without segments: '
                         f'{number} left out')
    if 'several subsets' in kind.lacks:
        number = sum(len({one.subset for one in group}) > 1
                     for group in groups.values())
        if number:
            lines.append(f'{kind.title} has one subset per video: {number} '
                         'videos with several get the first one')
    if kind.unit == 's':
        return lines
    rates = {video: 1000. if kind.unit == 'ms' else frame_rate(
        video, info.fps, video) for video, info in annotations.videos.items()}
    return lines + _rounding(annotations.segments, rates, kind)


def _rounding(segments: Sequence[VideoSegment], rates: dict[str, float],
              kind: Format) -> list[str]:
    """Return lines about times that a format rounds."""
    changed, largest, short = 0, 0., 0
    for one in segments:
        rate = rates[one.video]
        start, stop = frames_of(one, rate)
        change = max([abs(start / rate - one.start)] + [
            abs(stop / rate - one.end)] * (not is_open(one)))
        # Below the rounding errors of times that are multiples of a frame.
        changed += change > 1e-6
        largest = max(largest, change)
        short += stop == start + 1
    lines = []
    if changed:
        unit = 'milliseconds' if kind.unit == 'ms' else 'whole frames'
        lines.append(f'{kind.title} counts {unit}: the times of {changed} '
                     f'segments change by at most {largest:.4f} s')
    if short and 'one frame' in kind.lacks:
        lines.append(f'{kind.title} shows a segment of one frame as a point '
                     f'event: {short} segments become points')
    return lines
