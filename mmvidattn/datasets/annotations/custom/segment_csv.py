# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CSV file of labeled segments of long videos."""
from collections.abc import Iterator
from pathlib import Path

from ..video_segment import (
    VideoSegment,
    read_columns,
    read_rows,
    seconds,
    segment_reader,
)

NUMBERS = 'verb', 'noun'
ALIASES = dict(file='video', stop='end')


def has_segment_columns(header: list[str]) -> bool:
    """Return True if a header has the columns of this format."""
    names = {ALIASES.get(name, name) for name in header}
    return names >= {'video', 'start', 'end'} and (
        'label' in names or names >= {*NUMBERS}) and 'action' not in names


@segment_reader
def read_segment_csv(path: str | Path) -> Iterator[VideoSegment]:
    """Read a user's segments from a CSV file.

    Required columns are ``video`` (or ``file``), ``start`` and ``end`` (or
    ``stop``) in seconds, and either ``label`` or ``verb`` and ``noun``. A
    label is the name or the number of a class, and is returned as text; verb
    and noun are numbers. The columns ``id`` and ``subset`` are optional. Rows
    whose column ``mark`` is ``wrong`` are left out, because they are not
    events (:mod:`.marks_csv`).
    """
    names, _ = next(read_rows(path), ([], ''))
    if not has_segment_columns(names):
        raise ValueError(
            f'{path} must have columns video, start, end and label (or verb '
            f'and noun instead of label), got {", ".join(names) or "none"}')
    for row, where in read_columns(path, (), ALIASES):
        if row.get('mark', '').lower() == 'wrong':
            continue
        if 'label' in row:
            labels = dict(action=row['label'])
        else:
            try:
                labels = {part: int(row[part]) for part in NUMBERS}
                if min(labels.values()) < 0:
                    raise ValueError
            except ValueError:
                raise ValueError(
                    f'{where}: verb and noun must be numbers, got '
                    f'{row["verb"]!r} and {row["noun"]!r}') from None
        yield VideoSegment(
            row.get('id') or where, row['video'],
            seconds(row['start'], where), seconds(row['end'], where), labels,
            where, row.get('subset') or 'all')
