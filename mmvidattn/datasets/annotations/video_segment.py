# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Annotated segments of videos, and helpers for their readers."""
import codecs
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

from ...utils.remote_files import local_path
from ...utils.text_files import split_lines

Fault = Callable[[str], None]
# Separators of CSV files: spreadsheet programs use all of them.
SEPARATORS = ',;\t'
# Columns of our CSV files, and other names for two of them.
NAMES = ('video', 'start', 'end', 'label', 'id', 'subset', 'score', 'split',
         'group')
ALIASES = dict(file='video', stop='end')
# Columns with numbers.
NUMBERS = 'start', 'end', 'score'
# [hh:]mm:ss[.ff]. Seconds are below 60, and minutes too if there are hours.
CLOCK = re.compile(
    r'(?:(\d+):(?=[0-5]?\d:))?(\d+):([0-5]?\d(?:\.\d*)?)', re.ASCII)


class VideoSegment(NamedTuple):
    """Annotated action of a video; times are in seconds.

    A point event ends at its start. An unknown end is nan. An action with
    several classes is several segments with equal times.
    """
    id: str
    video: str
    start: float
    end: float
    # Class number or name of each known part: action, verb, noun.
    labels: dict[str, int | str]
    # File and line, for error messages.
    where: str
    subset: str = 'all'
    # Annotated frames, in formats that count frames instead of seconds.
    frames: tuple[int, int] | None = None
    # Score of a prediction.
    score: float | None = None

    @property
    def label(self) -> str:
        """Name of the action's class."""
        return str(self.labels['action'])

    @property
    def is_point(self) -> bool:
        """True for an event without duration."""
        return self.end == self.start

    @property
    def is_open(self) -> bool:
        """True if the end is unknown."""
        return math.isnan(self.end)


def refuse(message: str) -> NoReturn:
    """Raise a ``ValueError``, the default way to handle a fault."""
    raise ValueError(message)


def read_text(path: str | Path) -> str:
    """Read a file or URL in UTF-8, or in UTF-16 with a byte order mark.

    Spreadsheet programs write both.

    Raises:
        ValueError: If the file is missing or not text.
    """
    local = local_path(path, latest=True)
    if not local.is_file():
        raise ValueError(f'file not found: {path}')
    return decode_text(local.read_bytes(), path)


def decode_text(data: bytes, path: str | Path) -> str:
    """Decode the content of a file; see :func:`read_text`."""
    is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode('utf-16' if is_utf16 else 'utf-8-sig')
        # Any line ends.
        return text.replace('\r\n', '\n').replace('\r', '\n')
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        raise ValueError(
            f'{path} must be text in UTF-8, got the byte '
            f'{data[error.start]:#04x} in line {line}; a spreadsheet program '
            'writes UTF-8 if you save the file as "CSV UTF-8"') from None


def read_json(path: str | Path) -> Any:
    """Read a JSON file.

    Raises:
        ValueError: If the file is missing, not valid JSON, nested too deeply,
            or an object has a key twice.
    """
    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            (key, _), = Counter(key for key, _ in pairs).most_common(1)
            raise ValueError(f'the key {key!r} is used twice in an object')
        return found

    text = read_text(path)
    try:
        return json.loads(text, object_pairs_hook=distinct)
    except ValueError as error:
        # Also a number with more digits than Python reads.
        raise ValueError(f'{path} must be JSON: {error}') from None
    except RecursionError:
        raise ValueError(f'{path}: the JSON is nested too deeply') from None


def read_lines(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yield each non-blank line, and a text with its file and line number."""
    for number, line in enumerate(split_lines(read_text(path)), 1):
        if line.strip():
            yield line, f'{path}, line {number}'


def read_rows(path: str | Path) -> Iterator[tuple[list[str], str]]:
    """Yield each non-blank row of a CSV file, and its file and line number.

    The separator is the most frequent one of ``SEPARATORS`` in the first line;
    a comma if there is none.

    Raises:
        ValueError: If the file is not valid CSV.
    """
    text = read_text(path)
    # Strict: an unclosed quote is an error.
    rows = csv.reader(io.StringIO(text), delimiter=_separator(text),
                      skipinitialspace=True, strict=True)
    try:
        for row in rows:
            row = [word.strip() for word in row]
            if any(row):
                yield row, f'{path}, line {rows.line_num}'
    except csv.Error as error:
        raise ValueError(
            f'{path}, line {rows.line_num}: invalid CSV: {error}') from None


def _separator(text: str) -> str:
    return max(SEPARATORS, key=text.lstrip().partition('\n')[0].count)


def own_name(column: str) -> str:
    """Return our name of a column: in lower case, without aliases."""
    return ALIASES.get(column.lower(), column.lower())


def read_columns(path: str | Path, needed: Iterable[str],
                 name_of: Callable[[str], str] = str
                 ) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the rows of a CSV file with a header, and their places.

    Args:
        path: File.
        needed: Required columns.
        name_of: Function that returns the name of a column of the file.
            Defaults to no change.

    Raises:
        ValueError: If a column is missing or repeated, or the number of
            fields in a row differs from the header.
    """
    rows = read_rows(path)
    header, _ = next(rows, ([], ''))
    names = [name_of(name) for name in header]
    if not {*needed} <= {*names}:
        columns = ', '.join(
            ' or '.join([name, *(old for old, new in ALIASES.items()
                                 if new == name == name_of(old))])
            for name in needed)
        raise ValueError(f'{path} must have columns {columns}, got '
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
                'Put quotes around a field that contains the separator')
        yield {name: word for name, word in zip(names, row) if name}, where


def read_table(path: str | Path, needed: Iterable[str],
               columns: Mapping[str, str] | None = None,
               fps: float | None = None
               ) -> Iterator[tuple[dict[str, str], str]]:
    """Yield the rows of a CSV file under our names of its columns.

    If semicolons separate the columns, numbers may have a decimal comma.
    Backslashes in the path of a video become slashes.

    Args:
        path: CSV file.
        needed: Required columns, by our names.
        columns: Column of the file for each of our names (``NAMES``), such as
            ``dict(video='Media file', start='Start (s)')``. Other columns are
            ignored, and the end ``NA`` is unknown. Defaults to our own names
            and ``ALIASES``, in any case.
        fps: With ``columns``, the start and end are frame numbers at this
            rate. Defaults to None, seconds.

    Raises:
        ValueError: If a column is unknown, or as in :func:`read_columns`.
    """
    if columns is not None and (columns.keys() - {*NAMES}
                                or {*needed} - columns.keys()):
        raise ValueError(
            f'columns must name {", ".join(needed)}, and may name '
            f'{", ".join(name for name in NAMES if name not in needed)}; got '
            + (', '.join(columns) or 'none'))
    has_commas = _separator(read_text(path)) == ';'
    rows = read_columns(path, needed, own_name) if columns is None else \
        read_columns(path, columns.values())
    for row, where in rows:
        if columns is not None:
            row = {name: row[column] for name, column in columns.items()}
            if row.get('end') == 'NA':
                row['end'] = ''
        if 'video' in row:
            row['video'] = row['video'].replace('\\', '/')
        for name in NUMBERS if has_commas else ():
            if name in row:
                row[name] = row[name].replace(',', '.')
        for name in ('start', 'end') if columns and fps else ():
            if row.get(name):
                frame = parse_number(row[name])
                if math.isnan(frame):
                    raise ValueError(f'{where}: {name} must be a frame number '
                                     f'at {fps:g} fps, got {row[name]!r}')
                row[name] = repr(frame / fps)
        yield row, where


def parse_number(text: str | float) -> float:
    """Convert a text to a finite number; return nan if it is not one."""
    try:
        value = float(text)
    except (ValueError, OverflowError):
        return math.nan
    return value if math.isfinite(value) else math.nan


def seconds(word: object, where: str) -> float:
    """Convert a number, ``mm:ss.ff`` or ``hh:mm:ss.ff`` to seconds.

    Raises:
        ValueError: If the format is different, or ``mm:ss`` has a sign.
    """
    text = str(word).strip()
    clock = CLOCK.fullmatch(text)
    if clock:
        hours, minutes, rest = map(float, clock.groups(default='0'))
        value = 3600 * hours + 60 * minutes + rest
    else:
        # float() accepts 1_000.
        value = math.nan if '_' in text else parse_number(text)
    if not math.isfinite(value):
        raise ValueError(f'{where}: expected seconds, mm:ss or hh:mm:ss, got '
                         f'{word!r}')
    return value


def segment_reader(read: Callable[..., Iterable[VideoSegment]]
                   ) -> Callable[..., list[VideoSegment]]:
    """Decorate a generator of segments: return the list of the valid ones.

    A segment is invalid if it does not end after its start, repeats an id, or
    has a number of a class out of range. The decorated function has three more
    arguments:

    * ``num_classes``: Number of classes of each part (action, verb, noun)
      whose labels are numbers.
    * ``fault``: Function that is called with a message for each invalid
      segment. Defaults to raising a ``ValueError``.
    * ``points``: Accept point events and unknown ends. Defaults to False.
    """
    @functools.wraps(read)
    def reader(*args: Any, num_classes: Mapping[str, int] | None = None,
               fault: Fault = refuse, points: bool = False,
               **kwargs: Any) -> list[VideoSegment]:
        valid: dict[str, VideoSegment] = {}
        for segment in read(*args, **kwargs):
            message = ''
            if segment.is_open and not points:
                message = 'a segment must have an end, got an unknown one'
            elif segment.start < 0 or segment.end <= segment.start and not (
                    points and segment.is_point):
                start, end = segment.frames or (segment.start, segment.end)
                unit = 'frames' if segment.frames else 's'
                message = (f'a segment must have 0 <= start < end, got '
                           f'{start:g} to {end:g} {unit}')
            elif segment.id in valid:
                message = (f'the id {segment.id} is already used in '
                           f'{valid[segment.id].where}')
            for part, label in segment.labels.items():
                number = (num_classes or {}).get(part, math.inf)
                if (not message and isinstance(label, int)
                        and not 0 <= label < number):
                    message = (f'{part} must be in 0 to {number - 1}, got '
                               f'{label}')
            if message:
                fault(f'{segment.where}: {message}')
            else:
                valid[segment.id] = segment
        return list(valid.values())

    return reader


@segment_reader
def checked(segments: Iterable[VideoSegment]) -> Iterable[VideoSegment]:
    """Return the valid ones of segments from any reader."""
    return segments


def fit_to_videos(segments: Iterable[VideoSegment],
                  durations: Mapping[str, float]
                  ) -> tuple[list[VideoSegment], dict[str, list[str]]]:
    """Cut segments at the end of their videos, and list these videos.

    In published lists, some segments end or even start after the end of their
    video.

    Args:
        segments: Segments from any reader.
        durations: Length of each video in seconds. Segments of other videos
            stay unchanged.

    Returns:
        Segments that start within their video, and the videos of cut and
        dropped segments; see :func:`describe`.
    """
    changed: dict[str, list[str]] = {}
    kept = []
    for segment in segments:
        duration = durations.get(segment.video, math.inf)
        if segment.start >= duration:
            changed.setdefault('dropped after the end of', []).append(
                segment.video)
            continue
        if segment.end > duration:
            changed.setdefault('cut at the end of', []).append(segment.video)
            segment = segment._replace(end=duration)
        kept.append(segment)
    return kept, changed


def describe(changed: Mapping[str, Sequence[str]]) -> str:
    """Format the changes of :func:`fit_to_videos`; empty if there are none."""
    return ', '.join(
        f'{len(videos)} {kind} {videos[0]}' + ' and others' * (
            len({*videos}) > 1) for kind, videos in sorted(changed.items()))


def steps_of(start: float, end: float, rate: float) -> tuple[int, int]:
    """Return the first step of a segment, and the first step after it."""
    # Round first, because time * rate may be 29.999999 instead of 30.
    return (math.floor(round(start * rate, 6)),
            math.ceil(round(end * rate, 6)))


def videos_of(segments: Sequence[VideoSegment]) -> list[str]:
    """Return the videos of the segments, without repetition, in order."""
    return list(dict.fromkeys(segment.video for segment in segments))
