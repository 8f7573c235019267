# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Subsets of segments with separate results, such as unseen and tail."""
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mmengine.logging import print_log

from ..utils.lines import read_lines
from .segment_scores import PARTS

# Maps the heading of a list file to the type of its lines.
HEADINGS = {
    **{name: 'id' for name in ('id', 'narration_id', 'segment_id',
                               'participant_id', 'video_id')},
    **{f'{part}{end}': part for part in PARTS for end in ('', '_class')}}


class SegmentSubset:
    """Subset of the segments, selected by ids or by classes.

    An id in a list names a segment (``P18_01_0``) or is a prefix of ids: a
    participant (``P18``) or a video (``P18_01``). A file lists one id or one
    class per line. An optional heading names the type (``narration_id``,
    ``participant_id``, ``verb``, ``noun``, ...); without a heading, lines are
    ids. The lists of RULSTM and of EPIC-KITCHENS-100 are both supported.

    Args:
        name: Name of the subset. If it ends with ``action``, ``verb`` or
            ``noun`` (such as ``tail_verb``), the subset applies only to
            results of this part.
        members: File, or list of ids.

    Raises:
        ValueError: If a file does not exist, or a line is invalid.

    Attributes:
        name: Name without the part.
        part: Part that the subset applies to; None for all parts.
    """

    def __init__(self, name: str, members: str | Sequence) -> None:
        stem, _, last = name.rpartition('_')
        self.name, self.part = (stem, last) if last in PARTS else (name, None)
        self.full_name = name
        self._kind = 'id'
        if isinstance(members, (str, Path)):
            self._kind, members = read_list(members)
        self._members = {str(one) if self._kind == 'id' else int(one)
                         for one in members}

    def has(self, identity: Any, labels: Mapping[str, int]) -> bool:
        """Return True if a segment with this id and labels belongs to it.

        Raises:
            ValueError: If the subset lists ids, and ``identity`` is None.
        """
        if self._kind != 'id':
            return labels.get(self._kind) in self._members
        if identity is None:
            raise ValueError(
                f'subsets: {self.full_name} is a list of ids, but the samples '
                'lack a segment_id')
        words = str(identity).split('_')
        return any('_'.join(words[:n]) in self._members
                   for n in range(1, len(words) + 1))

    def mask(self, segments: Iterable[tuple[Any, Mapping[str, int]]]
             ) -> np.ndarray:
        """Return which segments are in the subset; warn if none is.

        Args:
            segments: Id and labels of each of S segments.

        Returns:
            Mask, bool ``(S,)``.
        """
        inside = np.array([self.has(*segment) for segment in segments], bool)
        if not inside.any():
            print_log(
                f'subsets: {self.full_name} matches 0 of {len(inside)} '
                'segments, so its results are nan', 'current',
                logging.WARNING)
        return inside


def read_list(path: str | Path) -> tuple[str, list[str]]:
    """Read a file with one id or one class per line.

    Returns:
        Type according to the heading ('id' or a part; 'id' without a heading),
        and the other lines.

    Raises:
        ValueError: If the file does not exist, or a line is invalid.
    """
    if not Path(path).is_file():
        raise ValueError(f'subsets: {path} does not exist')
    lines = [line.strip() for line in read_lines(path)]
    heading = HEADINGS.get(lines[0].lower()) if lines else None
    pattern = r'\w[\w.-]*' if heading in (None, 'id') else r'\d+'
    for number, line in enumerate(lines, 1):
        if line and not re.fullmatch(pattern, line) and (
                number > 1 or heading is None):
            raise ValueError(
                f'{path}, line {number}: {line!r} is not a segment id or a '
                'class number')
    entries = lines if heading is None else lines[1:]
    return heading or 'id', [line for line in entries if line]


def build_subsets(subsets: Mapping[str, Any] | None) -> list[SegmentSubset]:
    """Build the subsets of a metric from ``{name: members}``."""
    return [SegmentSubset(*each) for each in (subsets or {}).items()]
