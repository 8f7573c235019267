# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of EGTEA Gaze+'s official lists of trimmed clips."""
from pathlib import Path

from ..video_segment import read_lines

# A clip's name ends with four fields: start and end in ms, and first and last
# frame.
TAIL_FIELDS = 4


def read_egtea_clips(path: str | Path) -> list[tuple[str, int]]:
    """Read clips and their classes from ``{train,test}_split<n>.txt``.

    Each line has the name of a clip, its action (counted from 1), its verb and
    its nouns. Clips are in a folder for each session, such as
    OP01-R01-PastaSalad of the clip
    OP01-R01-PastaSalad-1002316-1004005-F024051-F024101.

    Returns:
        Path below ``cropped_clips`` and class (counted from 0) of each clip.

    Raises:
        ValueError: If the file is missing, or a line has another format.
    """
    clips = []
    for line, where in read_lines(path):
        fields = line.split()
        if len(fields) < 2 or not fields[1].isdecimal() or fields[1] == '0':
            raise ValueError(f'{where}: expected a clip and its action '
                             f'(from 1), got {line!r}')
        session, *tail = fields[0].rsplit('-', TAIL_FIELDS)
        if len(tail) != TAIL_FIELDS or not tail[-1].startswith('F'):
            raise ValueError(
                f'{where}: the name of a clip must be '
                f'SESSION-START-END-FRAME-FRAME, got {fields[0]!r}')
        clips.append((f'{session}/{fields[0]}.mp4', int(fields[1]) - 1))
    return clips


def read_egtea_actions(path: str | Path) -> list[str]:
    """Read class names from ``action_idx.txt``, lines of name and number."""
    names = {}
    for line, _ in read_lines(path):
        name, _, number = line.strip().rpartition(' ')
        if name and number.isdecimal():
            names[int(number)] = name.strip()
    if sorted(names) != list(range(1, len(names) + 1)):
        raise ValueError(f'{path}: expected a name and its number on each '
                         'line, numbered from 1')
    return [names[number] for number in sorted(names)]
