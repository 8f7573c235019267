# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""An annotated segment of a video, and what all readers of them share."""
import csv
import io
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

Fault = Callable[[str], None]


class VideoSegment(NamedTuple):
    """An annotated action of a video; times are in seconds."""
    id: str
    video: str
    start: float
    end: float
    # Of each of action, verb and noun that is known, its number or its name.
    labels: dict[str, int | str]
    # File and line, for messages.
    where: str
    subset: str = 'all'
    # As annotated, where the format counts frames and not seconds.
    frames: tuple[int, int] | None = None


def refuse(message: str) -> NoReturn:
    """Raise: what readers do with a fault, unless told otherwise."""
    raise ValueError(message)


def read_text(path: str | Path) -> str:
    """The text of a file in UTF-8, with a byte order mark or without.

    Raises:
        ValueError: If there is no such file, or it is no text.
    """
    if not Path(path).is_file():
        raise ValueError(f'there is no file {path}')
    try:
        # With any line ends.
        return Path(path).read_text(encoding='utf-8-sig')
    except UnicodeDecodeError as error:
        raise ValueError(f'{path} must be text in UTF-8: {error}') from None


def read_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Each line that is not blank, and where it is."""
    # Not splitlines, which takes more than line ends for such.
    for number, line in enumerate(read_text(path).split('\n'), 1):
        if line.strip():
            yield line, f'{path}, line {number}'


def read_rows(path: str | Path) -> Iterator[tuple[list[str], str]]:
    """Each row of a CSV file that is not blank, and where it is."""
    rows = csv.reader(io.StringIO(read_text(path)))
    for row in rows:
        row = [word.strip() for word in row]
        if any(row):
            yield row, f'{path}, line {rows.line_num}'


def read_columns(path: str | Path, needed: Iterable[str]
                 ) -> Iterator[tuple[dict[str, str], str]]:
    """Each row of a CSV file that has a header, by the names of its columns.

    Raises:
        ValueError: If a column is missing, or a row is shorter than the
            header.
    """
    rows = read_rows(path)
    names, _ = next(rows, ([], ''))
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(f'{path} must have columns {", ".join(needed)}, got '
                         + (', '.join(names) or 'nothing'))
    for row, where in rows:
        if len(row) < len(names):
            raise ValueError(f'{where}: expected {len(names)} fields, got '
                             f'{len(row)}')
        yield dict(zip(names, row)), where


def seconds(word: object, where: str) -> float:
    """A time, as a number or ``hh:mm:ss.ff``.

    Raises:
        ValueError: If it is no time.
    """
    try:
        value = 0.
        for part in str(word).split(':'):
            value = 60 * value + float(part)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f'{where}: {word!r} must be a number of seconds')
    return value


def checked(segments: Iterable[VideoSegment],
            num_classes: Mapping[str, int] | None = None,
            fault: Fault = refuse) -> list[VideoSegment]:
    """Those segments that can be meant.

    Args:
        segments: Of any reader.
        num_classes: Of each of action, verb and noun whose labels are
            numbers, how many there are.
        fault: Called with each fault: a segment that does not end after it
            begins, an id that occurs twice, a label out of range. The segment
            is left out if it returns.
    """
    found: dict[str, VideoSegment] = {}
    for segment in segments:
        where = segment.where
        message = ''
        if segment.start < 0 or segment.end <= segment.start:
            start, end = segment.frames or (segment.start, segment.end)
            unit = 'frames' if segment.frames else 's'
            message = (f'a segment must have 0 <= start < end, got {start:g} '
                       f'to {end:g} {unit}')
        elif segment.id in found:
            message = (f'the id {segment.id} is that of '
                       f'{found[segment.id].where} as well')
        for part, number in (num_classes or {}).items():
            label = segment.labels.get(part)
            if (not message and isinstance(label, int)
                    and not 0 <= label < number):
                message = f'{part} must be in 0 to {number - 1}, got {label}'
        if message:
            fault(f'{where}: {message}')
        else:
            found[segment.id] = segment
    return list(found.values())


def fit_to_videos(segments: Iterable[VideoSegment],
                  durations: Mapping[str, float], part: str = 'action'
                  ) -> tuple[list[VideoSegment], Counter]:
    """Cut segments at the end of their videos, and count what is unusual.

    Published lists have segments that reach beyond the end of the video, or
    lie behind it, and segments of one class that overlap.

    Args:
        segments: Of any reader.
        durations: Seconds of each video; the segments of a video that is not
            in it stay as they are.
        part: Of which labels those are that overlap.

    Returns:
        The segments but those that begin behind the end, and how many
        overlapped another (``'overlaps kept'``), were cut, were left out. See
        :func:`describe`.
    """
    counts: Counter = Counter()
    kept = []
    by_class: dict[tuple, list[VideoSegment]] = {}
    for segment in segments:
        duration = durations.get(segment.video, math.inf)
        if segment.start >= duration:
            counts['behind the end of their video left out'] += 1
            continue
        if segment.end > duration:
            counts['cut at the end of their video'] += 1
            segment = segment._replace(end=duration)
        kept.append(segment)
        if part in segment.labels:
            by_class.setdefault((segment.video, segment.labels[part]),
                                []).append(segment)
    for group in by_class.values():
        last = -math.inf
        for segment in sorted(group, key=lambda segment: segment.start):
            counts['overlaps kept'] += segment.start < last
            last = max(last, segment.end)
    return kept, +counts


def describe(counts: Mapping[str, int]) -> str:
    """One line of what :func:`fit_to_videos` counted, empty if nothing.

    As in ``12 overlaps kept, 3 segments cut at the end of their video``.
    """
    said = []
    for what, number in sorted(counts.items(), reverse=True):
        noun, *rest = what.split(' ', 1)
        if noun != 'overlaps':
            noun, rest = 'segments', [what]
        if number == 1:
            noun, rest = noun[:-1], [rest[0].replace('their', 'its')]
        said.append(f'{number} {noun} {rest[0]}')
    return ', '.join(said)


def steps_of(start: float, end: float, rate: float) -> tuple[int, int]:
    """First step, and first step after, of a segment in seconds."""
    # A hair less than a whole number, of 29.999999 for frame 30, is one.
    return (math.floor(round(start * rate, 6)),
            math.ceil(round(end * rate, 6)))


def videos_of(segments: Sequence[VideoSegment]) -> list[str]:
    """The videos that have segments, each once, in order."""
    return list(dict.fromkeys(segment.video for segment in segments))
