# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CSV files of labeled segments of long videos."""
import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...utils.files import write_atomically
from .published import FPS, read_epic_kitchens, read_rulstm
from .video_segment import (
    SEPARATORS,
    VideoSegment,
    own_name,
    parse_number,
    read_rows,
    read_table,
    seconds,
    segment_reader,
)

PARTS = 'verb', 'noun'
NEEDED = 'video', 'start', 'end', 'label'


def recognizes(start: str) -> bool:
    """Return True if a text starts with a header of this format."""
    header = start.partition('\n')[0]
    return any(
        has_segment_columns([name.strip(' "\r') for name in
                             header.split(separator)])
        for separator in SEPARATORS)


def has_segment_columns(header: list[str]) -> bool:
    """Return True if a header has the columns of this format."""
    names = {*map(own_name, header)}
    return names >= {'video', 'start', 'end'} and (
        'label' in names or names >= {*PARTS}) and 'action' not in names


@segment_reader
def read_segment_csv(path: str | Path,
                     columns: Mapping[str, str] | None = None,
                     fps: float | None = None) -> Iterator[VideoSegment]:
    """Read a user's segments from a CSV file.

    Required columns are ``video`` (or ``file``), ``start`` and ``end`` (or
    ``stop``) in seconds, and either ``label`` or ``verb`` and ``noun``. A
    label is the name or the number of a class, and is returned as text; verb
    and noun are numbers. The columns ``id``, ``subset`` and ``score`` are
    optional. An empty ``end`` is unknown.

    ``columns`` and ``fps`` read another program's table, see
    :func:`~.video_segment.read_table`.
    """
    names, _ = next(read_rows(path), ([], ''))
    if columns is None and not has_segment_columns(names):
        raise ValueError(
            f'{path} must have columns video, start, end and label (or verb '
            f'and noun instead of label), got {", ".join(names) or "none"}; '
            'name the columns of another table with --columns')
    needed = () if columns is None else NEEDED
    for row, where in read_table(path, needed, columns, fps):
        if 'label' in row:
            labels = dict(action=row['label'])
        else:
            try:
                labels = {part: int(row[part]) for part in PARTS}
            except ValueError:
                raise ValueError(
                    f'{where}: verb and noun must be numbers, got '
                    f'{row["verb"]!r} and {row["noun"]!r}') from None
        text = row.get('score')
        score = parse_number(text) if text else None
        if text and math.isnan(score):
            raise ValueError(f'{where}: score must be a number, got {text!r}')
        yield VideoSegment(
            row.get('id') or where, row['video'],
            seconds(row['start'], where),
            seconds(row['end'], where) if row['end'] else math.nan, labels,
            where, row.get('subset') or 'all', score=score)


def read_segment_file(path: str | Path, fps: float = FPS,
                      **checks: Any) -> list[VideoSegment]:
    """Read the segments of a CSV file in any supported format.

    Args:
        path: File. With a column ``narration_id``, it is read by
            :func:`read_epic_kitchens`. With columns ``video``, ``start`` and
            ``end``, it is read by :func:`read_segment_csv`. Any other file is
            read by :func:`read_rulstm`.
        fps: Frames per second in RULSTM's files.
        checks: Arguments of :func:`~.video_segment.segment_reader`.
    """
    header, _ = next(read_rows(path), ([], ''))
    if 'narration_id' in header:
        return read_epic_kitchens(path, **checks)
    if has_segment_columns(header):
        return read_segment_csv(path, **checks)
    return read_rulstm(path, fps, **checks)


def write_segment_csv(segments: Sequence[VideoSegment],
                      path: str | Path) -> None:
    """Write segments to a file that :func:`read_segment_csv` reads.

    The columns ``id``, ``subset`` and ``score`` are written if any segment
    has one.

    Args:
        segments: Segments with the part ``action``, or all with the parts
            ``verb`` and ``noun``.
        path: File to write.

    Raises:
        ValueError: If only some segments have the part ``action``.
    """
    has_label = {'action' in segment.labels for segment in segments}
    if len(has_label) > 1:
        raise ValueError('all segments must have a label, or all a verb and '
                         'a noun')
    parts = PARTS if has_label == {False} else ('action', )
    columns = ['video', 'start', 'end',
               *('label' if part == 'action' else part for part in parts)]
    optional = dict(
        id=[one.id if one.id != one.where else '' for one in segments],
        subset=[one.subset if one.subset != 'all' else '' for one in segments],
        score=['' if one.score is None else one.score for one in segments])
    optional = {name: values for name, values in optional.items()
                if any(value != '' for value in values)}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow([*columns, *optional])
    # The shortest text of a number that is read as the same number.
    for one, *more in zip(segments, *optional.values()):
        writer.writerow([
            one.video, one.start, '' if math.isnan(one.end) else one.end,
            *(one.labels[part] for part in parts), *more])
    write_atomically(path, text.getvalue())
