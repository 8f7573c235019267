# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parts that the formats of annotation programs share."""
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ..video_segment import VideoSegment

# Returns the frame rate of a video, by its name in the file and the rate that
# the file states, if any. Its last argument names the place for errors.
FrameRate = Callable[[str, float | None, str], float]


class VideoInfo(NamedTuple):
    """Facts of a video; None if unknown."""
    fps: float | None = None
    duration: float | None = None
    width: int | None = None
    height: int | None = None
    # Such as train, if the annotations state it.
    subset: str | None = None


@dataclass
class Annotations:
    """Contents of an annotation file.

    Attributes:
        segments: Segments in the order of the file. A point event ends at its
            start; an unknown end is nan. A segment with several labels is
            several segments with equal times.
        videos: Facts of all listed videos, with or without segments.
        remarks: A line about each kind of content that was left out.
        missing: Videos that the folder of videos lacks.
        problems: A line about each kind of difference to the videos.
        format: Name of the format.
    """
    segments: list[VideoSegment] = field(default_factory=list)
    videos: dict[str, VideoInfo] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    format: str = ''

    def add_video(self, name: str, **facts: Any) -> None:
        """Add a video, or facts that are not known yet."""
        known = self.videos.get(name, VideoInfo())
        self.videos[name] = known._replace(**{
            key: value for key, value in facts.items()
            if value is not None and getattr(known, key) is None})

    def count(self, number: int, remark: str) -> None:
        """Add a remark that begins with a number, unless it is 0."""
        if number:
            self.remarks.append(f'{number} {remark}')


@dataclass(frozen=True)
class Format:
    """Format of annotation files.

    Attributes:
        title: Name of the program.
        suffix: Suffix of the files.
        read: Function that reads a file.
        write: Function that writes the segments and videos of
            :class:`Annotations` to a file.
        recognizes: Function that returns True for the start of a file.
        unit: Unit of time, ``'s'``, ``'ms'`` or ``'frame'``.
        lacks: Keys of :data:`~.losses.LOSSES`, content that the format cannot
            express.
        one_video: True if each file has one video. Then a folder contains the
            files of several videos.
    """
    title: str
    suffix: str
    read: Callable[[Path, FrameRate], Annotations]
    write: Callable[..., None]
    recognizes: Callable[[str], bool]
    unit: str = 's'
    lacks: tuple[str, ...] = ()
    one_video: bool = False


def is_point(segment: VideoSegment) -> bool:
    """Return True for an event without duration."""
    return segment.end == segment.start


def is_open(segment: VideoSegment) -> bool:
    """Return True for a segment whose end is unknown."""
    return math.isnan(segment.end)


def label_of(segment: VideoSegment) -> str:
    """Return the class name of a segment."""
    return str(segment.labels['action'])


def labels_of(segments: Iterable[VideoSegment]) -> list[str]:
    """Return the class names of segments, sorted."""
    return sorted({label_of(segment) for segment in segments})


def by_video(annotations: Annotations) -> dict[str, list[VideoSegment]]:
    """Return the segments of each video, in order."""
    groups: dict[str, list[VideoSegment]] = {
        name: [] for name in annotations.videos}
    for segment in annotations.segments:
        groups.setdefault(segment.video, []).append(segment)
    return groups


def frames_of(segment: VideoSegment, fps: float) -> tuple[int, int]:
    """Return the first frame of a segment, and the frame after its last one.

    Both are equal for a point and for an unknown end. Other segments have at
    least one frame.
    """
    start = round(segment.start * fps)
    if is_point(segment) or is_open(segment):
        return start, start
    return start, max(start + 1, round(segment.end * fps))


def lanes(segments: Iterable[VideoSegment]) -> list[list[VideoSegment]]:
    """Distribute segments to as few lanes as needed to avoid overlap.

    A segment whose end is unknown is the last in its lane.
    """
    lanes: list[list[VideoSegment]] = []
    for segment in sorted(segments, key=lambda one: (
            one.start, is_open(one), one.end)):
        for lane in lanes:
            # False for a nan.
            if lane[-1].end <= segment.start:
                lane.append(segment)
                break
        else:
            lanes.append([segment])
    return lanes


def distinct_ids(segments: Iterable[VideoSegment]) -> list[VideoSegment]:
    """Add a number to ids that repeat."""
    numbers: dict[str, int] = {}
    result = []
    for segment in segments:
        number = numbers[segment.id] = numbers.get(segment.id, 0) + 1
        if number > 1:
            segment = segment._replace(id=f'{segment.id}#{number}')
        result.append(segment)
    return result


def subset_of(info: VideoInfo, segments: Iterable[VideoSegment]) -> str:
    """Return the subset of a video, which may have no segments."""
    stated = (one.subset for one in segments if one.subset != 'all')
    return next(stated, info.subset or 'all')


def video_subsets(annotations: Annotations) -> dict[str, str]:
    """Return the subset of each video; ``all`` if none is stated.

    Raises:
        ValueError: If a video has several subsets.
    """
    found = {}
    for video, segments in by_video(annotations).items():
        info = annotations.videos.get(video, VideoInfo())
        stated = {info.subset or 'all', *(one.subset for one in segments)}
        if len(stated - {'all'}) > 1:
            raise ValueError(f'{video} must have one subset, got '
                             + ' and '.join(sorted(stated - {'all'})))
        found[video] = subset_of(info, segments)
    return found


def merge(parts: Mapping[Path, Annotations]) -> Annotations:
    """Merge the contents of several files."""
    result = Annotations()
    for path, part in parts.items():
        result.segments += part.segments
        for name, info in part.videos.items():
            result.add_video(name, **info._asdict())
            known = result.videos[name].subset
            if info.subset not in (None, known):
                raise ValueError(f'{path}: {name} must have one subset, got '
                                 f'{info.subset} and {known}')
        result.remarks += [remark for remark in part.remarks
                           if remark not in result.remarks]
        result.format = part.format
    return result
