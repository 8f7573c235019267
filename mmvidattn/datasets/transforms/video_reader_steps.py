# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pipeline steps that open and decode videos."""
import os.path as osp
from typing import Any

import numpy as np
from mmaction.registry import TRANSFORMS
from mmengine.fileio import FileClient

from ...utils.arguments import Natural, check_arguments
from ...utils.video_reader import open_video
from .base_transform import OptionTransform
from .segment_frames import SegmentFrames


@TRANSFORMS.register_module()
@check_arguments
class VideoReaderInit(OptionTransform):
    """Open a video, or a segment of it.

    The keys are the same as in mmaction2's ``DecordInit``: it reads
    ``filename`` (``.mp4`` is appended if the suffix is missing), and adds
    ``video_reader``, ``total_frames`` and ``avg_fps``. A ``segment`` limits
    the video, see :class:`~.segment_frames.SegmentFrames`.

    Args:
        io_backend: Storage of the files. Files on disk are read partially;
            other files are loaded completely.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.
        kwargs: Arguments of the file client, which disk does not have.

    Raises:
        ValueError: If ``kwargs`` are given for files on disk. When called,
            if the segment is empty or the file cannot be read.
    """

    def __init__(self, io_backend: str = 'disk', num_threads: Natural = 1,
                 **kwargs: Any) -> None:
        if io_backend == 'disk' and kwargs:
            raise ValueError(
                f"VideoReaderInit has no option {', '.join(kwargs)} for files "
                'on disk, which PyAV decodes: remove it')
        self.num_threads = num_threads
        self.io_backend = io_backend
        self.kwargs = kwargs
        self._file_client: FileClient | None = None
        self._segment = SegmentFrames()

    def transform(self, results: dict) -> dict:
        """Open the video, and limit it to the segment."""
        filename = results['filename']
        if not osp.splitext(filename)[1]:
            filename += '.mp4'
        source: Any = filename
        if self.io_backend != 'disk':
            if self._file_client is None:
                self._file_client = FileClient(self.io_backend, **self.kwargs)
            source = bytes(self._file_client.get(filename))
        reader = open_video(source, self.num_threads)
        results.update(video_reader=reader, total_frames=len(reader),
                       avg_fps=reader.get_avg_fps())
        return self._segment.limit(results)


@TRANSFORMS.register_module()
class VideoReaderDecode(OptionTransform):
    """Decode the frames ``frame_inds`` of an opened video.

    The keys are the same as in mmaction2's ``DecordDecode``: it adds ``imgs``
    (list of RGB frames, uint8 [H, W, 3]), ``original_shape`` and
    ``img_shape``, scales ``gt_bboxes`` and ``proposals`` to pixels, and
    closes the video.
    """

    def transform(self, results: dict) -> dict:
        """Decode the frames."""
        indices = np.ravel(results['frame_inds'])
        images = list(results['video_reader'].get_batch(indices))
        height, width = images[0].shape[:2]
        results.update(
            video_reader=None, frame_inds=indices, imgs=images,
            original_shape=(height, width), img_shape=(height, width))
        for key in 'gt_bboxes', 'proposals':
            if 'gt_bboxes' in results and results.get(key) is not None:
                results[key] = (results[key] * np.array(
                    [width, height, width, height])).astype(np.float32)
        return results
