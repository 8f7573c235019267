# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""EGTEA Gaze+'s own lists of trimmed clips, its action_annotation."""
from pathlib import Path

from ..video_segment import read_lines

# What a clip's name ends with: two times in ms, first and last frame.
TAIL_FIELDS = 4


def clip_path(name: str) -> str:
    """The file of a clip below ``cropped_clips``, in its session's folder.

    OP01-R01-PastaSalad-1002316-1004005-F024051-F024101 is of the session
    OP01-R01-PastaSalad.

    Raises:
        ValueError: If it is no name of a clip.
    """
    fields = name.rsplit('-', TAIL_FIELDS)
    if len(fields) != TAIL_FIELDS + 1 or not fields[-1].startswith('F'):
        raise ValueError(f'{name!r} is no name of a clip of EGTEA Gaze+, '
                         'SESSION-START-END-FRAME-FRAME')
    return f'{fields[0]}/{name}.mp4'


def read_egtea_clips(path: str | Path) -> list[tuple[str, int]]:
    """Clips and classes, from 0, of ``{train,test}_split<n>.txt``.

    A line has a clip, its action (from 1), its verb and its nouns.

    Raises:
        ValueError: If there is no such file, or a line is not of that kind.
    """
    clips = []
    for line, where in read_lines(path):
        fields = line.split()
        if len(fields) < 2 or not fields[1].isdecimal() or fields[1] == '0':
            raise ValueError(f'{where}: expected a clip and its action, from '
                             f'1, got {line!r}')
        clips.append((clip_path(fields[0]), int(fields[1]) - 1))
    return clips


def read_egtea_actions(path: str | Path) -> list[str]:
    """The names in ``action_idx.txt``: lines of a name and its number."""
    names = {}
    for line, _ in read_lines(path):
        name, _, number = line.strip().rpartition(' ')
        if name and number.isdecimal():
            names[int(number)] = name.strip()
    if sorted(names) != list(range(1, len(names) + 1)):
        raise ValueError(f'{path}: expected a name and a number from 1 on '
                         'each line')
    return [names[number] for number in sorted(names)]
