# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers for the annotation files of published data sets.

THUMOS'14 has a file for each class and split, TVSeries has
``GT-{train,val,test}.txt``, and EPIC-Kitchens and EGTEA Gaze+ have RULSTM's
lists and the official ones.
"""
from collections.abc import Iterator
from pathlib import Path

from .video_segment import (
    VideoSegment,
    read_columns,
    read_json,
    read_lines,
    read_rows,
    seconds,
    segment_reader,
)

THUMOS14_SPLITS = 'val', 'test'
# Classes in the order of the released targets and checkpoints.
THUMOS14 = (
    'BaseballPitch', 'BasketballDunk', 'Billiards', 'CleanAndJerk',
    'CliffDiving', 'CricketBowling', 'CricketShot', 'Diving', 'FrisbeeCatch',
    'GolfSwing', 'HammerThrow', 'HighJump', 'JavelinThrow', 'LongJump',
    'PoleVault', 'Shotput', 'SoccerPenalty', 'TennisSwing', 'ThrowDiscus',
    'VolleyballSpiking', 'Ambiguous')
TVSERIES = (
    'Pick something up', 'Point', 'Drink', 'Stand up', 'Run', 'Sit down',
    'Read', 'Smoke', 'Drive car', 'Open door', 'Give something',
    'Use computer', 'Write', 'Go down stairway', 'Close door',
    'Throw something', 'Go up stairway', 'Get in/out of car', 'Hang up phone',
    'Eat', 'Answer phone', 'Dress up', 'Clap', 'Undress', 'Kiss', 'Fall/trip',
    'Wave', 'Pour', 'Punch', 'Fire weapon')
# In the released order. Training uses the lists "train" and "val".
TVSERIES_VIDEOS = dict(
    train=(
        '24_ep1', '24_ep2', '24_ep3', 'Breaking_Bad_ep1', 'Breaking_Bad_ep2',
        'How_I_Met_Your_Mother_ep1', 'How_I_Met_Your_Mother_ep2',
        'How_I_Met_Your_Mother_ep3', 'How_I_Met_Your_Mother_ep4',
        'How_I_Met_Your_Mother_ep5', 'How_I_Met_Your_Mother_ep6',
        'Mad_Men_ep1', 'Mad_Men_ep2', 'Modern_Family_ep1',
        'Modern_Family_ep2', 'Modern_Family_ep3', 'Modern_Family_ep4',
        'Modern_Family_ep6', 'Sons_of_Anarchy_ep1', 'Sons_of_Anarchy_ep2'),
    test=(
        '24_ep4', 'Breaking_Bad_ep3', 'Mad_Men_ep3',
        'How_I_Met_Your_Mother_ep7', 'How_I_Met_Your_Mother_ep8',
        'Modern_Family_ep5', 'Sons_of_Anarchy_ep3'))
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
def read_thumos14(folder: str | Path, split: str) -> Iterator[VideoSegment]:
    """Read ``<class>_<split>.txt``, lines of video, start and end.

    The protocol of online detection uses only the videos in these files: 200
    of ``val`` and 213 of ``test``.
    """
    if split not in THUMOS14_SPLITS:
        raise ValueError('the split of thumos14 must be val or test, got '
                         f'{split!r}')
    for label in THUMOS14:
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


def read_data_info(path: str | Path, name: str) -> list[list[str]]:
    """Read one data set of ``data_info.json`` of LSTR, TeSTra and MAT.

    Its name is ``THUMOS``, ``TVSeries``, ``EK55`` or ``EK100``. Return the
    classes, starting with the background, training and test videos.
    """
    try:
        content = read_json(path)[name]
        return [[str(item) for item in content[key]] for key in (
            'class_names', 'train_session_set', 'test_session_set')]
    except KeyError as error:
        raise ValueError(f'{path} must have classes and videos of {name}, '
                         f'and lacks {error}') from None


@segment_reader
def read_tvseries(path: str | Path,
                  subset: str = 'all') -> Iterator[VideoSegment]:
    """Read tab-separated lines ``video, class, start, end, ...``."""
    for line, where in read_lines(path):
        words = [word.strip() for word in line.split('\t')]
        if len(words) < 4:
            raise ValueError(f'{where}: expected video, class, start and end, '
                             f'separated by tabs, got {line!r}')
        yield VideoSegment(
            where, words[0], seconds(words[2], where),
            seconds(words[3], where), dict(action=words[1]), where, subset)


@segment_reader
def read_rulstm(path: str | Path, fps: float = FPS) -> Iterator[VideoSegment]:
    """Read lines ``id, video, start_frame, end_frame, verb, noun, action``.

    A header is optional. Test lists lack verb, noun and action. Frames are
    counted at ``fps``.
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
        except ValueError:
            raise ValueError(
                f'{where}: frames and classes must be numbers, got '
                f'{", ".join(row.values())}') from None
        yield VideoSegment(
            row['narration_id'], row['video_id'],
            seconds(row['start_timestamp'], where),
            seconds(row['stop_timestamp'], where), labels, where,
            frames=frames)
