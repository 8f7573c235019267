# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""An annotated segment of a video, and what all readers of them share."""
import csv
import functools
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from ...utils.lines import split_lines

Fault = Callable[[str], None]
# [[hh:]mm:]ss[.ff], with minutes below 60 after hours, and seconds below 60.
CLOCK = re.compile(
    r'(?:(\d+):(?=[0-5]?\d:))?(\d+):([0-5]?\d(?:\.\d*)?)', re.ASCII)


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


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: If the file is missing or not valid JSON.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ValueError(f'{path} must be JSON: {error}') from None


def read_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield each line that is not blank, with its file and number."""
    for number, line in enumerate(split_lines(read_text(path)), 1):
        if line.strip():
            yield line, f'{path}, line {number}'


def read_rows(path: str | Path) -> Iterator[tuple[list[str], str]]:
    """Yield each row of a CSV file that is not blank, with file and line.

    Raises:
        ValueError: If the file is not valid CSV.
    """
    # Strict, so that a quote that is never closed is an error.
    rows = csv.reader(
        io.StringIO(read_text(path)), skipinitialspace=True, strict=True)
    try:
        for row in rows:
            row = [word.strip() for word in row]
            if any(row):
                yield row, f'{path}, line {rows.line_num}'
    except csv.Error as error:
        raise ValueError(
            f'{path}, line {rows.line_num}: invalid CSV: {error}') from None


def read_columns(path: str | Path, needed: Iterable[str],
                 aliases: Mapping[str, str] | None = None
                 ) -> Iterator[tuple[dict[str, str], str]]:
    """Yield each row of a CSV file with a header, with its file and line.

    Args:
        path: The file.
        needed: Columns that it must have.
        aliases: Other names of columns, to the names that the rows get.

    Yields:
        The row as ``{column: field}``, and its place for messages.

    Raises:
        ValueError: If a column is missing or occurs twice, or a row has fewer
            or more fields than the header.
    """
    aliases = aliases or {}
    rows = read_rows(path)
    header, _ = next(rows, ([], ''))
    names = [aliases.get(name, name) for name in header]
    missing = [name for name in needed if name not in names]
    if missing:
        raise ValueError(f'{path} must have columns {", ".join(needed)}, got '
                         + (', '.join(header) or 'nothing'))
    for name, number in Counter(filter(None, names)).items():
        if number > 1:
            same = [old for old, new in zip(header, names) if new == name]
            raise ValueError(f'{path} must have one column {name}, got '
                             f'{number}: {", ".join(same)}')
    for row, where in rows:
        # Spreadsheets pad rows with empty fields.
        if len(row) < len(names) or any(row[len(names):]):
            raise ValueError(
                f'{where}: expected {len(names)} fields '
                f'({", ".join(header)}), got {len(row)}: {", ".join(row)}. '
                'Put quotes around a field that contains a comma')
        yield {name: word for name, word in zip(names, row) if name}, where


def seconds(word: object, where: str) -> float:
    """Convert a number, ``mm:ss.ff`` or ``hh:mm:ss.ff`` to seconds.

    Raises:
        ValueError: If it is none of these. A sign before ``mm:ss`` is an
            error, too.
    """
    text = str(word).strip()
    clock = CLOCK.fullmatch(text)
    if clock:
        hours, minutes, rest = clock.groups(default='0')
        return 3600. * int(hours) + 60 * int(minutes) + float(rest)
    try:
        value = math.nan if '_' in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f'{where}: expected seconds, mm:ss or hh:mm:ss, got '
                         f'{word!r}')
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


def segment_reader(read: Callable[..., Iterator[VideoSegment]]
                   ) -> Callable[..., list[VideoSegment]]:
    """Make a reader of a generator of segments.

    The reader takes the arguments ``num_classes`` and ``fault`` of
    :func:`checked` as well.
    """
    @functools.wraps(read)
    def reader(*args: Any, num_classes: Mapping[str, int] | None = None,
               fault: Fault = refuse, **kwargs: Any) -> list[VideoSegment]:
        return checked(read(*args, **kwargs), num_classes, fault)

    return reader


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
