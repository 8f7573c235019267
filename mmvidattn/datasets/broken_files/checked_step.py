# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps of a pipeline whose frames are counted: decoders may lose some."""
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from mmcv import VideoReader


class DecodeClock:
    """Seconds that a process has spent on opening and decoding a sample.

    Attributes:
        seconds: Since :meth:`start`; None if it has done neither.
    """

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Begin a sample."""
        self.seconds: float | None = None

    def add(self, seconds: float) -> None:
        """Count a step of the sample."""
        self.seconds = (self.seconds or 0.) + seconds


CLOCK = DecodeClock()


class CheckedStep:
    """A step of a pipeline, and a check of the frames that it decodes.

    Args:
        step: Transform.

    Raises:
        ValueError: When called, if the video has no frames, or fewer were
            read than sampled, or one of them is empty.
    """

    def __init__(self, step: Callable) -> None:
        self.step = step

    def __repr__(self) -> str:
        return repr(self.step)

    def __call__(self, results: Any) -> Any:
        had = _made(results)
        began = time.perf_counter()
        results = self.step(results)
        if not isinstance(results, dict):
            return results
        new = _made(results) - had
        if new:
            CLOCK.add(time.perf_counter() - began)
        if isinstance(results.get('video_reader'), VideoReader):
            results['video_reader'] = _StrictReader(results['video_reader'])
        total = results.get('total_frames')
        if total is not None and total < 1:
            raise ValueError('it has no frames')
        if 'imgs' in new and results.get('modality', 'RGB') == 'RGB':
            _check_frames(results['imgs'], results.get('frame_inds'))
        return results


def plain_step(step: Callable) -> Callable:
    """Return a step without its check, if it has one."""
    return step.step if isinstance(step, CheckedStep) else step


def _made(results: Any) -> set[str]:
    """What there is of an opened video and its frames."""
    return {'imgs', 'video_reader'} & results.keys() if isinstance(
        results, dict) else set()


def _check_frames(frames: Any, wanted: Any) -> None:
    if wanted is not None and len(frames) != np.size(wanted):
        raise ValueError(
            f'{len(frames)} frames were read, {np.size(wanted)} are wanted')
    for number, frame in enumerate(frames):
        if frame is None or not np.size(frame):
            raise ValueError(f'frame {number} of the clip is empty')


class _StrictReader:
    """mmcv's reader, which refuses a frame that it cannot decode.

    ``OpenCVDecode`` would repeat an earlier frame.
    """

    def __init__(self, reader: VideoReader) -> None:
        self.reader = reader

    def __len__(self) -> int:
        return len(self.reader)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def __getitem__(self, index: Any) -> np.ndarray:
        frame = self.reader[index]
        if frame is None:
            raise ValueError(f'frame {index} of {len(self)} cannot be read')
        return frame
