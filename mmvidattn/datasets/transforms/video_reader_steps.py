# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Pipeline steps that open a video or a segment of it, and decode frames."""
import logging
import os.path as osp
from typing import Any

import numpy as np
from mmaction.datasets import DecordInit
from mmaction.registry import TRANSFORMS
from mmcv.transforms import BaseTransform
from mmengine.fileio import FileClient
from mmengine.logging import print_log

from ...utils.arguments import Natural, check_arguments
from ...utils.frame_times import frame_times
from ...utils.video_reader import VideoReader

UNITS = 's', 'frames'
# Tolerance: lists are rounded, and decord's time stamps are float32.
MILLISECOND = 1e-3


class SegmentFrames:
    """Steps that limit an opened video to its ``segment``, if it has one.

    ``segment`` is ``(start, stop, 's')`` or ``(first frame, first frame after
    it, 'frames')``. Later steps sample frames from the segment, as if the file
    had been cut there: ``start_index`` and ``total_frames`` are set to it. It
    has the frames whose time stamps are at or after ``start`` and before
    ``stop``, with a tolerance of a millisecond; the frame rate may vary. The
    first frame of the video has time 0. In a file without time stamps, such as
    some avi files, all frames have the same duration.

    A segment that ends after its video is cut there; a warning names the first
    one. An empty segment raises a ``ValueError``.
    """
    _warned = False

    def limit(self, results: dict) -> dict:
        """Limit a sample to its segment."""
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
            times = frame_times(reader)
            end = float(times[-1])
            # The first frames that begin at or after these times.
            first, last = np.searchsorted(
                times[:-1], [start - MILLISECOND, stop - MILLISECOND]).tolist()
        if first >= length:
            raise ValueError(f'{where} begins after the video, which has '
                             f'{end:g} {unit}')
        if first >= last:
            raise ValueError(f'{where} contains no frame')
        if stop > end + MILLISECOND and not self._warned:
            self._warned = True
            # A list may have thousands of them.
            print_log(
                f'{results["filename"]}: {where} is cut at the end of the '
                f'video, {end:g} {unit}; others are cut without a warning',
                logger='current', level=logging.WARNING)
        return first, last


@TRANSFORMS.register_module()
class DecordSegmentInit(SegmentFrames, DecordInit):
    """``DecordInit`` for segments of long videos (:class:`SegmentFrames`)."""

    def transform(self, results: dict) -> dict:
        return self.limit(super().transform(results))


@TRANSFORMS.register_module()
@check_arguments
class VideoReaderInit(SegmentFrames, BaseTransform):
    """Open a video, or a segment of it (:class:`SegmentFrames`).

    The keys are the same as in mmaction2's ``DecordInit``: it reads
    ``filename`` (``.mp4`` is appended if the suffix is missing), and adds
    ``video_reader``, ``total_frames`` and ``avg_fps``.

    Args:
        io_backend: Storage of the files. Files on disk are read partially;
            other files are loaded completely.
        num_threads: Number of decoding threads; 0 lets ffmpeg choose.
        kwargs: Arguments of the file client, which disk does not have.
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

    def transform(self, results: dict) -> dict:
        filename = results['filename']
        if not osp.splitext(filename)[1]:
            filename += '.mp4'
        source: Any = filename
        if self.io_backend != 'disk':
            if self._file_client is None:
                self._file_client = FileClient(self.io_backend, **self.kwargs)
            source = bytes(self._file_client.get(filename))
        reader = VideoReader(source, self.num_threads)
        results.update(video_reader=reader, total_frames=len(reader),
                       avg_fps=reader.get_avg_fps())
        return self.limit(results)


@TRANSFORMS.register_module()
class VideoReaderDecode(BaseTransform):
    """Decode the frames ``frame_inds`` of an opened video.

    The keys are the same as in mmaction2's ``DecordDecode``: it adds ``imgs``
    (list of RGB frames, uint8 [H, W, 3]), ``original_shape`` and
    ``img_shape``, scales ``gt_bboxes`` and ``proposals`` to pixels, and
    closes the video.
    """

    def transform(self, results: dict) -> dict:
        indices = np.ravel(results['frame_inds'])
        images = results['video_reader'].get_frames(indices)
        height, width = images[0].shape[:2]
        results.update(
            video_reader=None, frame_inds=indices, imgs=images,
            original_shape=(height, width), img_shape=(height, width))
        for key in 'gt_bboxes', 'proposals':
            if 'gt_bboxes' in results and results.get(key) is not None:
                results[key] = (results[key] * np.array(
                    [width, height, width, height])).astype(np.float32)
        return results
