# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Reader of segment CSV files, which recognizes the format by the header."""
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
        path: File. With a column ``narration_id``, it is read by
            :func:`read_epic_kitchens`. With columns ``video``, ``start`` and
            ``end``, it is read by :func:`read_segment_csv`. Any other file is
            read by :func:`read_rulstm`.
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
