# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Parts that the formats of annotation programs share."""
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ....utils.files import write_atomically
from ..video_segment import VideoSegment, parse_number, read_json

# Characters of a value that an error shows.
MAX_SHOWN = 60


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

    @property
    def labels(self) -> list[str]:
        """Class names of the segments, sorted."""
        return sorted({segment.label for segment in self.segments})

    def by_video(self) -> dict[str, list[VideoSegment]]:
        """Return the segments of each video, in order."""
        groups: dict[str, list[VideoSegment]] = {
            name: [] for name in self.videos}
        for segment in self.segments:
            groups.setdefault(segment.video, []).append(segment)
        return groups

    def count(self, number: int, remark: str) -> None:
        """Add a remark that begins with a number, unless it is 0."""
        if number:
            self.remarks.append(f'{number} {remark}')


class Format(NamedTuple):
    """Format of annotation files.

    Attributes:
        title: Name of the program.
        suffix: Suffix of the files.
        read: Function that reads a file, with the arguments ``options``.
        write: Function that writes the segments and videos of
            :class:`Annotations` to a file.
        recognizes: Function that returns True for the start of a file.
        lacks: Content that the format cannot express: ``'scores'``,
            ``'subsets'``, ``'points'``, ``'one frame'`` (segments of one
            frame), ``'several subsets'`` (of a video), ``'empty videos'``.
        options: Those of ``'fps'``, ``'columns'`` and ``'tiers'`` that
            ``read`` accepts.
        one_video: True if each file has one video. Then a folder contains the
            files of several videos.
    """
    title: str
    suffix: str
    read: Callable[..., Annotations]
    write: Callable[..., None]
    recognizes: Callable[[str], bool]
    lacks: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    one_video: bool = False


class Entry:
    """Value of a JSON file with its path in it, such as ``[0].data.video``."""

    def __init__(self, value: Any, file: Path, path: str = '') -> None:
        self.value = value
        self.file = file
        self.path = path

    @classmethod
    def of_file(cls, path: Path) -> 'Entry':
        """Read a JSON file."""
        return cls(read_json(path), path)

    @property
    def where(self) -> str:
        """File and path, for error messages."""
        return f'{self.file}, {self.path}' if self.path else str(self.file)

    def fail(self, expected: str) -> NoReturn:
        """Raise a ``ValueError`` that names the place and the value."""
        kinds = {dict: 'an object', list: 'a list'}
        shown = kinds.get(type(self.value)) or json.dumps(
            self.value, ensure_ascii=False)
        if len(shown) > MAX_SHOWN:
            shown = shown[:MAX_SHOWN] + '...'
        raise ValueError(f'{self.where}: expected {expected}, got {shown}')

    def items(self) -> Iterator[tuple[str, 'Entry']]:
        """Yield the keys and values of an object."""
        if not isinstance(self.value, dict):
            self.fail('an object')
        for key, value in self.value.items():
            yield key, self._member(key, value)

    def _member(self, key: str, value: Any) -> 'Entry':
        return Entry(value, self.file, f'{self.path}.{key}'.lstrip('.'))

    def __iter__(self) -> Iterator['Entry']:
        if not isinstance(self.value, list):
            self.fail('a list')
        return (Entry(value, self.file, f'{self.path}[{i}]')
                for i, value in enumerate(self.value))

    def read(self, key: str, convert: Callable[['Entry'], Any] = lambda x: x,
             default: Any = None) -> Any:
        """Convert a value of an object, if it is neither missing nor null."""
        if not isinstance(self.value, dict):
            self.fail('an object')
        value = self.value.get(key)
        return default if value is None else convert(self._member(key, value))

    def __getitem__(self, key: str) -> 'Entry':
        found = self.read(key)
        if found is None:
            raise ValueError(
                f'{self.where}: expected an object with {key!r}, got '
                + (', '.join(self.value) or 'an empty one'))
        return found

    def text(self) -> str:
        """Return a text that is not empty, without blanks at its ends."""
        if isinstance(self.value, bool) or not isinstance(
                self.value, (str, int, float)) or not str(self.value).strip():
            self.fail('a text that is not empty')
        return str(self.value).strip()

    def number(self) -> float:
        """Return a finite number; a text with a number is converted."""
        number = math.nan if isinstance(self.value, bool) or not isinstance(
            self.value, (str, int, float)) else parse_number(self.value)
        if math.isnan(number):
            self.fail('a number')
        return number

    def positive(self) -> float:
        """Return a number above 0."""
        if self.number() <= 0:
            self.fail('a positive number')
        return self.number()


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    write_atomically(
        path, json.dumps(content, indent=1, ensure_ascii=False) + '\n')


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
    for video, segments in annotations.by_video().items():
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
