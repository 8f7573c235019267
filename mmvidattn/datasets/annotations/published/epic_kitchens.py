# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The official lists of EPIC-Kitchens-100."""
from collections.abc import Iterator
from pathlib import Path

from ..video_segment import VideoSegment, read_columns, seconds, segment_reader

COLUMNS = ('narration_id', 'video_id', 'start_timestamp', 'stop_timestamp',
           'start_frame', 'stop_frame')
LABELS = dict(verb='verb_class', noun='noun_class')


@segment_reader
def read_epic_kitchens(path: str | Path) -> Iterator[VideoSegment]:
    """``EPIC_100_{train,validation,test_timestamps}.csv``.

    Seconds are those of the time stamps. The frames are those of the video's
    own rate (48 to 90 a second), where RULSTM's are of 30.
    """
    for row, where in read_columns(path, COLUMNS):
        try:
            frames = int(row['start_frame']), int(row['stop_frame'])
            labels = {part: int(row[name]) for part, name in LABELS.items()
                      if name in row}
            if labels and min(labels.values()) < 0:
                raise ValueError
        except ValueError:
            raise ValueError(
                f'{where}: frames and classes must be numbers, got '
                f'{", ".join(row.values())}') from None
        yield VideoSegment(
            row['narration_id'], row['video_id'],
            seconds(row['start_timestamp'], where),
            seconds(row['stop_timestamp'], where), labels, where,
            frames=frames)


def read_epic_classes(path: str | Path) -> list[str]:
    """The names in ``EPIC_100_{verb,noun}_classes.csv``, in order."""
    names = []
    for row, where in read_columns(path, ('id', 'key')):
        if row['id'] != str(len(names)):
            raise ValueError(f'{where}: expected the id {len(names)}, got '
                             f'{row["id"]}')
        names.append(row['key'])
    return names
