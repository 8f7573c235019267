# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps that open and decode videos with any of our readers."""
import os.path as osp
from typing import Any

import numpy as np
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from mmengine.fileio import FileClient

from ...utils.arguments import Natural, check_arguments
from ...utils.video_readers import open_video, split_video_backend
from .segment_frames import SegmentFrames


@TRANSFORMS.register_module()
@check_arguments
class VideoReaderInit(BaseTransform):
    """Open a video with one of our readers, or a segment of it.

    Keys are those of mmaction2's ``DecordInit``: of ``filename`` (an mp4 if it
    has no suffix) it makes ``video_reader``, ``total_frames`` and
    ``avg_fps``. A sample with a ``segment`` is limited to that, see
    :class:`~.segment_frames.SegmentFrames`.

    Args:
        backend: ``'decord'``, ``'torchcodec'``, ``'pyav'`` or ``'opencv'``.
        io_backend: Where files are. Those on disk are read where they are
            needed; others are loaded as a whole.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
        seek_mode: Of torchcodec and OpenCV; see their readers.
        device: Of torchcodec.
        kwargs: Arguments of the file client.

    Raises:
        ImportError: If the backend is not installed.
        ValueError: If there is no such backend; when called, if the segment
            has no frames or the file cannot be read.
    """

    def __init__(self, backend: str, io_backend: str = 'disk',
                 num_threads: Natural = 1, seek_mode: str | None = None,
                 device: str | None = None, **kwargs: Any) -> None:
        options = dict(type=backend, num_threads=num_threads,
                       seek_mode=seek_mode, device=device)
        self.backend = {key: value for key, value in options.items()
                        if value is not None}
        split_video_backend(self.backend)
        self.io_backend = io_backend
        self.kwargs = kwargs
        self.file_client: FileClient | None = None
        self._segment = SegmentFrames()

    def transform(self, results: dict) -> dict:
        """Open the video, and limit it to the segment."""
        filename = results['filename']
        if not osp.splitext(filename)[1]:
            filename += '.mp4'
        source: Any = filename
        if self.io_backend != 'disk':
            if self.file_client is None:
                self.file_client = FileClient(self.io_backend, **self.kwargs)
            source = bytes(self.file_client.get(filename))
        reader = open_video(source, self.backend)
        results.update(video_reader=reader, total_frames=len(reader),
                       avg_fps=reader.get_avg_fps())
        return self._segment.limit(results)

    def __repr__(self) -> str:
        return (f'{type(self).__name__}(backend={self.backend}, '
                f'io_backend={self.io_backend!r})')


@TRANSFORMS.register_module()
class VideoReaderDecode(BaseTransform):
    """Decode the frames of ``frame_inds`` of an opened video.

    Keys are those of mmaction2's ``DecordDecode``: it makes ``imgs`` (a list
    of RGB, uint8 [H, W, 3]), ``original_shape`` and ``img_shape``, scales
    ``gt_bboxes`` and ``proposals`` to pixels, and closes the video.
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

    def __repr__(self) -> str:
        return f'{type(self).__name__}()'


@TRANSFORMS.register_module()
@check_arguments
class TorchCodecInit(VideoReaderInit):
    """Open a video with torchcodec, or a segment of it.

    Keys are those of mmaction2's ``DecordInit``; see :class:`VideoReaderInit`.

    Args:
        io_backend: Where files are. Those on disk are read where they are
            needed; others are loaded as a whole.
        num_threads: Threads that decode; 0 lets ffmpeg choose.
        seek_mode: ``'exact'`` or ``'approximate'``, see
            :class:`~mmvidattn.utils.video_readers.torchcodec_reader.
            TorchCodecReader`.
        device: Where to decode. ``'cuda'`` needs torchcodec's build for CUDA
            and no forked workers; it is not tested here.
        kwargs: Arguments of the file client.
    """

    def __init__(self, io_backend: str = 'disk', num_threads: Natural = 1,
                 seek_mode: str = 'exact', device: str = 'cpu',
                 **kwargs: Any) -> None:
        super().__init__('torchcodec', io_backend, num_threads, seek_mode,
                         device, **kwargs)


@TRANSFORMS.register_module()
class TorchCodecDecode(VideoReaderDecode):
    """Decode frames with torchcodec; see :class:`VideoReaderDecode`."""
