# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Lists of EPIC-Kitchens and EGTEA Gaze+: RULSTM's and the official ones."""
from collections.abc import Iterator
from pathlib import Path

from ..video_segment import (
    VideoSegment,
    read_columns,
    read_rows,
    seconds,
    segment_reader,
)

# RULSTM converted all videos to this rate before counting frames.
FPS = 30
EK100_CLASSES = dict(action=3806, verb=97, noun=300)
EGTEA_CLASSES = dict(action=106, verb=19, noun=51)
PARTS = 'verb', 'noun', 'action'
# Columns of the official lists.
COLUMNS = ('narration_id', 'video_id', 'start_timestamp', 'stop_timestamp',
           'start_frame', 'stop_frame')
LABELS = dict(verb='verb_class', noun='noun_class')


@segment_reader
def read_rulstm(path: str | Path, fps: float = FPS) -> Iterator[VideoSegment]:
    """Read lines ``id, video, start_frame, end_frame, verb, noun, action``.

    A header is optional. Test lists lack verb, noun and action.

    Args:
        path: File.
        fps: Rate at which frames are counted. Defaults to 30.
    """
    first = True
    for row, where in read_rows(path):
        header = first and not any(map(str.isdecimal, ''.join(row[2:])))
        first = False
        if header:
            continue
        try:
            identity, video, *rest = row
            start, end, *labels = map(int, rest)
            if len(labels) not in (0, len(PARTS)):
                raise ValueError
            if labels and min(labels) < 0:
                raise ValueError
        except ValueError:
            raise ValueError(
                f'{where}: expected id, video, start_frame, end_frame, '
                f'verb, noun, action, got {", ".join(row)}') from None
        yield VideoSegment(identity, video, start / fps, end / fps,
                           dict(zip(PARTS, labels)), where,
                           frames=(start, end))


def read_rulstm_actions(path: str | Path) -> list[tuple[str, int, int]]:
    """Read name, verb and noun of each action from ``actions.csv``.

    Lines are ``id, verb, noun, action`` with a header (EPIC-Kitchens) or
    ``id, verb_noun, action`` without a header (EGTEA).
    """
    actions = []
    for i, (row, where) in enumerate(read_rows(path)):
        if i == 0 and not row[0].isdecimal():
            continue
        try:
            number, *numbers = row[0], *'_'.join(row[1:-1]).split('_')
            verb, noun = map(int, numbers)
            in_order = int(number) == len(actions)
        except ValueError:
            in_order = False
        if not in_order:
            raise ValueError(
                f'{where}: expected number {len(actions)}, verb, noun and '
                f'name of an action, got {", ".join(row)}')
        actions.append((row[-1], verb, noun))
    if not actions:
        raise ValueError(f'{path} lists no actions')
    return actions


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
