# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A csv of segments whose format its first line tells."""
from collections.abc import Mapping
from pathlib import Path

from .epic_kitchens import read_epic_kitchens
from .own_csv import is_own_csv, read_own_csv
from .rulstm import FPS, read_rulstm
from .video_segment import Fault, VideoSegment, checked, read_rows, refuse


def read_segment_file(path: str | Path, fps: float = FPS,
                      num_classes: Mapping[str, int] | None = None,
                      fault: Fault = refuse) -> list[VideoSegment]:
    """Segments of RULSTM's lists, EPIC-Kitchens' own or a csv of one's own.

    Args:
        path: The file. With a column ``narration_id`` it is EPIC-Kitchens'
            (see :func:`read_epic_kitchens`), with columns ``video`` and
            ``start`` one's own (:func:`read_own_csv`), else RULSTM's
            (:func:`read_rulstm`).
        fps: Frames a second that RULSTM's lists are counted in.
        num_classes: Of each of action, verb and noun whose labels are
            numbers, to check their range.
        fault: See :func:`checked`.
    """
    header, _ = next(read_rows(path), ([], ''))
    if 'narration_id' in header:
        return read_epic_kitchens(path, num_classes, fault)
    if is_own_csv(header):
        return checked(read_own_csv(path, fault), num_classes, fault)
    return read_rulstm(path, fps, num_classes, fault)
