# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Segment CSV files whose first line identifies the format."""
from pathlib import Path
from typing import Any

from .custom.segment_csv import has_segment_columns, read_segment_csv
from .published.epic_kitchens import read_epic_kitchens
from .published.rulstm import FPS, read_rulstm
from .video_segment import VideoSegment, read_rows


def read_segment_file(path: str | Path, fps: float = FPS,
                      **checks: Any) -> list[VideoSegment]:
    """Read the segments of a CSV file in any supported format.

    Args:
        path: File. A column ``narration_id`` marks EPIC-Kitchens
            (:func:`read_epic_kitchens`); columns ``video``, ``start`` and
            ``end`` mark a user's own file (:func:`read_segment_csv`); any
            other file is read as RULSTM's (:func:`read_rulstm`).
        fps: Frames per second in RULSTM's files.
        checks: ``num_classes`` and ``fault`` of
            :func:`~.video_segment.checked`.
    """
    header, _ = next(read_rows(path), ([], ''))
    if 'narration_id' in header:
        return read_epic_kitchens(path, **checks)
    if has_segment_columns(header):
        return read_segment_csv(path, **checks)
    return read_rulstm(path, fps, **checks)
