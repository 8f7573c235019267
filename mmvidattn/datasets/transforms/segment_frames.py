# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The frames of a segment of a long video."""
import logging
from typing import Any

from mmaction.datasets import DecordInit
from mmaction.registry import TRANSFORMS
from mmengine.logging import print_log

from ...utils.frame_times import find_frames

UNITS = 's', 'frames'
# Lists round to it, and decord's time stamps are float32.
MILLISECOND = 1e-3


class SegmentFrames:
    """Limits an opened video to its ``segment``, for steps that open videos.

    What samples frames next takes them from the segment, as it would from a
    file that was cut there. Frames are found by their own time stamps, so
    their rate may vary: those that begin from ``start`` to before ``stop``,
    to a millisecond. Time begins with the first frame. Of a file without time
    stamps, as some avi are, all frames take the same time.

    A segment that ends after its video is cut there; the log counts these.
    """

    def __init__(self) -> None:
        self._cut: set[tuple] = set()

    def limit(self, results: dict) -> dict:
        """Change ``start_index`` and ``total_frames`` of a sample that has a
        ``segment``: ``(start, stop, 's')``, or ``(first frame, first frame
        after it, 'frames')``, from 0.

        Raises:
            ValueError: If the segment has no frames.
        """
        if results.get('segment') is not None:
            first, stop = self._frames(results)
            results.update(start_index=first, total_frames=stop - first)
        return results

    def _frames(self, results: dict) -> tuple[int, int]:
        """First frame of the segment, and first after it."""
        start, stop, unit = results['segment']
        length, reader = results['total_frames'], results['video_reader']
        said = f'the segment from {start:g} to {stop:g} {unit}'
        if unit == 'frames':
            end, first, last = length, start, min(stop, length)
        else:
            (first, last), end = find_frames(
                reader, [start - MILLISECOND, stop - MILLISECOND])
        if first >= length:
            raise ValueError(f'{said} begins after the video, which has '
                             f'{end:g} {unit}')
        if first >= last:
            raise ValueError(f'{said} has no frame of the video')
        if stop > end + MILLISECOND:
            self._note_cut(
                results['filename'], start,
                f'{said} is cut at the end of the video, {end:g} {unit}')
        return first, last

    def _note_cut(self, filename: str, start: float, said: str) -> None:
        before = len(self._cut)
        self._cut.add((filename, start, said))
        # At 1, 2, 4, 8 of them, as a list may have thousands.
        if len(self._cut) > before and before & (before + 1) == 0:
            print_log(f'{filename}: {said} ({len(self._cut)} so far, of those '
                      'that this process has read)', logger='current',
                      level=logging.WARNING)


@TRANSFORMS.register_module()
class DecordSegmentInit(DecordInit):
    """``DecordInit`` of a segment of a long video.

    Changes ``start_index`` and ``total_frames`` of a sample that has a
    ``segment``, see :class:`SegmentFrames`.

    Args: those of ``DecordInit``.

    Raises:
        ValueError: When called, if the segment has no frames.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._segment = SegmentFrames()

    def transform(self, results: dict) -> dict:
        """Open the video, and limit it to the segment."""
        return self._segment.limit(super().transform(results))
