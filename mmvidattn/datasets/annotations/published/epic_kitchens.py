# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader for the official lists of EPIC-Kitchens-100."""
from collections.abc import Iterator
from pathlib import Path

from ..video_segment import VideoSegment, read_columns, seconds, segment_reader

COLUMNS = ('narration_id', 'video_id', 'start_timestamp', 'stop_timestamp',
           'start_frame', 'stop_frame')
LABELS = dict(verb='verb_class', noun='noun_class')


@segment_reader
def read_epic_kitchens(path: str | Path) -> Iterator[VideoSegment]:
    """Read ``EPIC_100_{train,validation,test_timestamps}.csv``.

    ``start`` and ``end`` come from the time stamps. ``frames`` are counted at
    the video's rate (48 to 90 fps), unlike RULSTM's frames (30 fps).
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
