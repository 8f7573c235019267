# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A csv of one's own."""
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


def is_own_csv(header: list[str]) -> bool:
    """Whether these are the columns of a csv of one's own."""
    names = {ALIASES.get(name, name) for name in header}
    return names >= {'video', 'start', 'end'} and (
        'label' in names or names >= {*NUMBERS}) and 'action' not in names


@segment_reader
def read_own_csv(path: str | Path) -> Iterator[VideoSegment]:
    """Columns video, start, end (in seconds) and label, or verb and noun.

    ``file`` and ``stop`` do as well as ``video`` and ``end``. A label is the
    name or the number of a class, as it is written; verb and noun are numbers.
    Columns ``id`` and ``subset`` may be there as well.
    """
    names, _ = next(read_rows(path), ([], ''))
    if not is_own_csv(names):
        raise ValueError(
            f'{path} must have columns video, start, end and label, got '
            f'{", ".join(names) or "nothing"} (verb and noun do as well as '
            'label)')
    for row, where in read_columns(path, (), ALIASES):
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
