# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms that limit a long video to a segment."""
import logging
from typing import Any

from mmaction.datasets import DecordInit
from mmaction.registry import TRANSFORMS
from mmengine.logging import print_log

from ...utils.frame_times import find_frames

UNITS = 's', 'frames'
# Tolerance: lists are rounded, and decord's time stamps are float32.
MILLISECOND = 1e-3


class SegmentFrames:
    """Limit an opened video to its ``segment``.

    Later steps sample frames from the segment, as if the file had been cut
    there. The segment has the frames whose time stamps are at or after
    ``start`` and before ``stop``, with a tolerance of a millisecond; the frame
    rate may vary. The first frame of the video has time 0. In a file without
    time stamps, such as some avi files, all frames have the same duration.

    A segment that ends after its video is cut there, and the log counts such
    segments.
    """

    def __init__(self) -> None:
        self._cut: set[tuple] = set()

    def limit(self, results: dict) -> dict:
        """Set ``start_index`` and ``total_frames`` to the segment, if any.

        Args:
            results: Sample, whose ``segment`` is ``(start, stop, 's')`` or
                ``(first frame, first frame after it, 'frames')``.

        Raises:
            ValueError: If the segment is empty.
        """
        if results.get('segment') is not None:
            first, stop = self._frames(results)
            results.update(start_index=first, total_frames=stop - first)
        return results

    def _frames(self, results: dict) -> tuple[int, int]:
        """Return the first frame of the segment, and the first after it."""
        start, stop, unit = results['segment']
        length, reader = results['total_frames'], results['video_reader']
        where = f'the segment from {start:g} to {stop:g} {unit}'
        if unit == 'frames':
            end, first, last = length, start, min(stop, length)
        else:
            (first, last), end = find_frames(
                reader, [start - MILLISECOND, stop - MILLISECOND])
        if first >= length:
            raise ValueError(f'{where} begins after the video, which has '
                             f'{end:g} {unit}')
        if first >= last:
            raise ValueError(f'{where} contains no frame')
        if stop > end + MILLISECOND:
            self._note_cut(
                results['filename'], start,
                f'{where} is cut at the end of the video, {end:g} {unit}')
        return first, last

    def _note_cut(self, filename: str, start: float, message: str) -> None:
        before = len(self._cut)
        self._cut.add((filename, start, message))
        # Only log the 1st, 2nd, 4th, 8th, ... segment, because a list may have
        # thousands.
        if len(self._cut) > before and before & (before + 1) == 0:
            print_log(
                f'{filename}: {message} ({len(self._cut)} so far in this '
                'process)', logger='current', level=logging.WARNING)


@TRANSFORMS.register_module()
class DecordSegmentInit(DecordInit):
    """``DecordInit`` for a segment of a long video.

    If a sample has a ``segment``, it sets ``start_index`` and
    ``total_frames``, see :class:`SegmentFrames`. See ``DecordInit`` for the
    arguments.

    Raises:
        ValueError: When called, if the segment is empty.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._segment = SegmentFrames()

    def transform(self, results: dict) -> dict:
        """Open the video, and limit it to the segment."""
        return self._segment.limit(super().transform(results))
