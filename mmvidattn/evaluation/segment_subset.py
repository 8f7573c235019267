# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Subsets of segments that results are reported of: unseen, tail."""
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.logging import print_log

from ..utils.lines import read_lines
from .segment_scores import PARTS

# What the first line of a list may say of the others.
HEADINGS = {
    **{name: 'id' for name in ('id', 'narration_id', 'segment_id',
                               'participant_id', 'video_id')},
    **{f'{part}{end}': part for part in PARTS for end in ('', '_class')},
}


class SegmentSubset:
    """Some of the segments, by their ids or by their classes.

    A list is of ids: of segments (``P18_01_0``), or of what the ids of
    several begin with, participants (``P18``) and videos (``P18_01``). Or it
    is of classes of verbs, nouns or actions. Where it is a file, it has one a
    line, and may have a heading (``narration_id``, ``participant_id``,
    ``verb``, ``noun``, ...), which says what it is of; without one, it is of
    ids. So the lists of RULSTM and those of EPIC-KITCHENS-100 are both read.

    Args:
        name: Of the subset, for errors. If it ends with a part
            (``tail_verb``), it is of that part's results alone.
        members: A file or a list of ids; or, to join several of these,
            ``dict(id=..., verb=..., noun=..., action=...)`` with some of
            these keys, the last three of classes.

    Raises:
        ValueError: If there is no such file, or a line of it is unfit.

    Attributes:
        name: Without the part.
        part: That it is of, or None if it is of all.
    """

    def __init__(
            self, name: str, members: str | Sequence | Mapping[str, str
                                                               | Sequence]
    ) -> None:
        stem, _, last = name.rpartition('_')
        self.name, self.part = (stem, last) if last in PARTS else (name, None)
        self.full_name = name
        self._members: dict[str, set] = {}
        lists = members if isinstance(members, Mapping) else dict(id=members)
        for kind, entries in lists.items():
            if kind not in ('id', *PARTS):
                raise ValueError(f'subsets: {name} may have id, '
                                 f'{", ".join(PARTS)}, got {kind!r}')
            if isinstance(entries, (str, Path)):
                heading, entries = read_list(entries)
                given = isinstance(members, Mapping)
                if given and heading not in (None, kind):
                    raise ValueError(
                        f'subsets: the list of {kind}s of {name} is headed '
                        f'as one of {heading}s: {members[kind]}')
                kind = heading or kind
            self._members[kind] = {
                str(entry) if kind == 'id' else int(entry)
                for entry in entries
            }

    def has(self, identity: Any, labels: Mapping[str, int]) -> bool:
        """Whether a segment is one of it.

        Args:
            identity: Its id; None if it has none.
            labels: Class of each part.

        Raises:
            ValueError: If the subset is of ids, and it has none.
        """
        if any(labels.get(part) in self._members.get(part, ())
               for part in PARTS):
            return True
        ids = self._members.get('id')
        if ids is None:
            return False
        if identity is None:
            raise ValueError(
                f'subsets: {self.full_name} is a list of ids, and the samples '
                'have no segment_id')
        words = str(identity).split('_')
        return any('_'.join(words[:n]) in ids
                   for n in range(1, len(words) + 1))

    def mask(self, segments: Iterable[tuple[Any, Mapping[str, int]]]
             ) -> np.ndarray:
        """Which segments are of it; warns if none is.

        Args:
            segments: Id and labels of each of S.

        Returns:
            Bool, ``(S,)``.
        """
        inside = np.array([self.has(*segment) for segment in segments], bool)
        if not inside.any():
            print_log(
                f'subsets: none of the {len(inside)} segments is of '
                f'{self.full_name}, whose results are nan', 'current',
                logging.WARNING)
        return inside


def read_list(path: str | Path) -> tuple[str | None, list[str]]:
    """Read a list of one id, or one class, a line.

    Returns:
        What the heading says it is of, 'id' or a part; None without one. And
        the lines.

    Raises:
        ValueError: If there is no such file, or a line has more.
    """
    if not Path(path).is_file():
        raise ValueError(f'subsets: there is no file {path}')
    lines = read_lines(path)
    heading = HEADINGS.get(lines[0].strip().lower()) if lines else None
    entries = []
    for number, line in enumerate(lines, 1):
        line = line.strip()
        if not line or (number == 1 and heading):
            continue
        pattern = r'\w[\w.-]*' if heading in (None, 'id') else r'\d+'
        if not re.fullmatch(pattern, line):
            raise ValueError(
                f'{path}, line {number}: {line!r} is not the id of a segment '
                'or the number of a class')
        entries.append(line)
    return heading, entries


def build_subsets(subsets: Mapping[str, Any] | None) -> list[SegmentSubset]:
    """The subsets of a metric, ``{name: members}``."""
    return [SegmentSubset(*each) for each in (subsets or {}).items()]
