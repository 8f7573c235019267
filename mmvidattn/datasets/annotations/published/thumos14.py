# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of THUMOS'14's temporal annotation, a file per class and split."""
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ..video_segment import (
    VideoSegment,
    read_json,
    read_lines,
    seconds,
    segment_reader,
)

SPLITS = 'val', 'test'
# In the order of the released targets and checkpoints.
CLASSES = (
    'BaseballPitch', 'BasketballDunk', 'Billiards', 'CleanAndJerk',
    'CliffDiving', 'CricketBowling', 'CricketShot', 'Diving', 'FrisbeeCatch',
    'GolfSwing', 'HammerThrow', 'HighJump', 'JavelinThrow', 'LongJump',
    'PoleVault', 'Shotput', 'SoccerPenalty', 'TennisSwing', 'ThrowDiscus',
    'VolleyballSpiking', 'Ambiguous')


@segment_reader
def read_thumos14(folder: str | Path, split: str) -> Iterator[VideoSegment]:
    """Read ``<class>_<split>.txt``, lines of video, start and end.

    The protocol of online detection uses only the videos in these files: 200
    of ``val`` and 213 of ``test``.
    """
    if split not in SPLITS:
        raise ValueError(f"the split of thumos14 must be {' or '.join(SPLITS)}"
                         f', got {split!r}')
    for label in CLASSES:
        path = Path(folder) / f'{label}_{split}.txt'
        for line, where in read_lines(path):
            words = line.split()
            if len(words) != 3:
                raise ValueError(f'{where}: expected video, start and end, '
                                 f'got {line!r}')
            yield VideoSegment(
                f'{label}_{where.rpartition(" ")[2]}', words[0],
                seconds(words[1], where), seconds(words[2], where),
                dict(action=label), where, split)


class DataInfo(NamedTuple):
    """Classes, starting with the background, and videos of a data set."""
    classes: list[str]
    train_videos: list[str]
    test_videos: list[str]


def read_data_info(path: str | Path, name: str) -> DataInfo:
    """Read one data set of ``data_info.json`` of LSTR, TeSTra and MAT.

    Args:
        path: File.
        name: ``THUMOS``, ``TVSeries``, ``EK55`` or ``EK100``.
    """
    content = read_json(path)
    if name not in content:
        raise ValueError(f'{path} must have {name}, got only '
                         + (', '.join(content) or 'an empty object'))
    try:
        return DataInfo(*([str(item) for item in content[name][key]] for key in
                          ('class_names', 'train_session_set',
                           'test_session_set')))
    except KeyError as error:
        raise ValueError(f'{path}: {name} lacks {error}') from None
