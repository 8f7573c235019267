# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checks of the frames that a pipeline step decodes."""
import os.path as osp
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from mmcv import VideoReader

from ...utils.remote_files import is_url, local_path


class DecodeClock:
    """Seconds in which this process opened and decoded the current sample.

    None if no step has opened or decoded a video yet.
    """
    seconds: float | None = None


CLOCK = DecodeClock()


class CheckedStep:
    """Wrapper of a pipeline step that checks the decoded frames.

    A remote video is copied first, see :func:`local_video`.

    Args:
        step: Transform.

    Raises:
        ValueError: When called, if the video or a frame is empty, or the
            number of decoded frames is wrong.
    """

    def __init__(self, step: Callable) -> None:
        self.step = step

    def __repr__(self) -> str:
        return repr(self.step)

    def __call__(self, results: Any) -> Any:
        local = local_video(results) if isinstance(results, dict) else None
        if local is not None:
            results = dict(results, filename=local)
        before = _opened(results)
        began = time.perf_counter()
        results = self.step(results)
        if not isinstance(results, dict):
            return results
        new = _opened(results) - before
        if new:
            CLOCK.seconds = (CLOCK.seconds or 0.) + (
                time.perf_counter() - began)
        if type(results.get('video_reader')) is VideoReader:
            results['video_reader'] = _StrictReader(results['video_reader'])
        total = results.get('total_frames')
        if total is not None and total < 1:
            raise ValueError('it contains no frames')
        if 'imgs' in new and results.get('modality', 'RGB') == 'RGB':
            _check_frames(results['imgs'], results.get('frame_inds'))
        return results


def local_video(sample: Mapping[str, Any]) -> str | None:
    """Return a local copy of a sample's video; None if it is local already.

    Raises:
        RemoteError: If the server cannot be reached. See
            :func:`~mmvidattn.utils.remote_files.local_path` for other errors.
    """
    name = str(sample.get('filename') or '')
    if not is_url(name):
        return None
    # mmaction2's readers append .mp4 to a name without a suffix.
    return str(local_path(name if osp.splitext(name)[1] else f'{name}.mp4'))


def plain_step(step: Callable) -> Callable:
    """Return the step inside of a :class:`CheckedStep`, or the step itself."""
    return step.step if isinstance(step, CheckedStep) else step


def _opened(results: Any) -> set[str]:
    """Return which of the keys of an opened video and its frames exist."""
    return {'imgs', 'video_reader'} & results.keys() if isinstance(
        results, dict) else set()


def _check_frames(frames: Any, sampled: Any) -> None:
    if sampled is not None and len(frames) != np.size(sampled):
        raise ValueError(
            f'expected {np.size(sampled)} frames, read {len(frames)}')
    for number, frame in enumerate(frames):
        if frame is None or not np.size(frame):
            raise ValueError(f'frame {number} of the clip is empty')


class _StrictReader(VideoReader):
    """mmcv's reader with an error for a frame that cannot be decoded.

    With mmcv's reader itself, ``OpenCVDecode`` repeats an earlier frame.
    """

    def __init__(self, reader: VideoReader) -> None:
        # Take over the opened file.
        vars(self).update(vars(reader))

    def get_frame(self, index: int) -> np.ndarray:
        """Decode a frame."""
        frame = super().get_frame(index)
        if frame is None:
            raise ValueError(f'frame {index} of {len(self)} cannot be read')
        return frame
