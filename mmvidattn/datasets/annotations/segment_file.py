# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""A csv of segments whose format its first line tells."""
from pathlib import Path
from typing import Any

from .own.segment_csv import is_own_csv, read_own_csv
from .published.epic_kitchens import read_epic_kitchens
from .published.rulstm import FPS, read_rulstm
from .video_segment import VideoSegment, read_rows


def read_segment_file(path: str | Path, fps: float = FPS,
                      **checks: Any) -> list[VideoSegment]:
    """Segments of RULSTM's lists, EPIC-Kitchens' own or a csv of one's own.

    Args:
        path: The file. With a column ``narration_id`` it is EPIC-Kitchens'
            (see :func:`read_epic_kitchens`), with columns ``video`` and
            ``start`` one's own (:func:`read_own_csv`), else RULSTM's
            (:func:`read_rulstm`).
        fps: Frames a second that RULSTM's lists are counted in.
        checks: ``num_classes`` and ``fault`` of
            :func:`~.video_segment.checked`.
    """
    header, _ = next(read_rows(path), ([], ''))
    if 'narration_id' in header:
        return read_epic_kitchens(path, **checks)
    if is_own_csv(header):
        return read_own_csv(path, **checks)
    return read_rulstm(path, fps, **checks)
