# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""When the frames of a video file are shown, also at a varying rate."""
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

# Of the intervals between frames, the share of short ones that do not count.
SHORTEST = 0.1
MAX_FPS = 240.


def frame_times(reader: Any) -> np.ndarray:
    """Seconds at which each frame begins, and at which the last one ends.

    The reader is decord's, or one of
    :func:`mmvidattn.utils.video_readers.open_video`; that of torchcodec
    decodes the whole video for it. Time begins with the first frame. Of a
    file without time stamps, as some avi are, all frames take the same time.
    """
    numbers = np.arange(len(reader))
    begins, ends = reader.get_frame_timestamp(numbers).T
    times = np.append(begins, ends[-1]) - begins[0]
    if (np.diff(times[:-1]) > 0).all() and times[-1] >= times[-2]:
        return times
    return np.append(numbers, len(reader)) / reader.get_avg_fps()


def find_frames(reader: Any, times: Sequence[float]
                ) -> tuple[list[int], float]:
    """Find the first frames that begin at these times, or later.

    Args:
        reader: See :func:`frame_times`. Of a reader that must decode a frame
            for its time stamp, few frames are looked at.
        times: In seconds; time begins with the first frame.

    Returns:
        Numbers of the frames (that after the last if there is none), and when
        the video ends.
    """
    if getattr(reader, 'has_quick_times', True):
        found = frame_times(reader)
        return np.searchsorted(found[:-1], times).tolist(), float(found[-1])
    first, last = reader.get_frame_timestamp([0, len(reader) - 1])
    fps = reader.get_avg_fps()

    def begin(number: int) -> float:
        return reader.get_frame_timestamp([number])[0, 0] - first[0]

    numbers = []
    for time in times:
        # Of a constant rate two frames tell; else half of them are ruled out
        # each time.
        low, high = 0, len(reader)
        guess = min(max(int(np.ceil(time * fps)), 1), high - 1)
        if begin(guess) < time:
            low = guess + 1
        else:
            high = guess
            if guess and begin(guess - 1) < time:
                low = guess
        numbers.append(bisect_left(range(len(reader)), time, low, high,
                                   key=begin))
    return numbers, float(last[1] - first[0])


class ConstantRate:
    """A video as it would be at a constant rate, by its frames' time stamps.

    A video whose frames come at its average rate, to a frame, stays as it is.
    Else the rate is that of its fast parts (nine in ten intervals between
    frames are as long or longer; 240 at most): in slow parts frames are
    repeated, and of frames that are closer some are left out.

    Args:
        reader: The video, see :func:`frame_times`.

    Attributes:
        fps: Frames a second.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._times: np.ndarray | None = None
        self.fps = float(reader.get_avg_fps())
        self._length = len(reader)
        times = frame_times(reader)
        numbers = np.arange(len(reader))
        if np.ptp(times[:-1] * self.fps - numbers) > 1:
            interval = float(np.quantile(np.diff(times[:-1]), SHORTEST))
            self.fps = min(1 / interval, MAX_FPS)
            self._times = times[:-1]
            self._length = int(times[-2] * self.fps + 0.5) + max(
                1, int((times[-1] - times[-2]) * self.fps + 0.5))

    def __len__(self) -> int:
        return self._length

    def frames(self, ticks: np.ndarray | int) -> np.ndarray:
        """Numbers of the frames that are shown at these ticks, from 0."""
        if self._times is None:
            return np.asarray(ticks)
        # A frame belongs to the tick that is nearest to it.
        return np.searchsorted(
            self._times, (np.asarray(ticks) + 0.5) / self.fps) - 1

    def get_batch(self, ticks: np.ndarray) -> Any:
        """The images at these ticks, as ``get_batch`` of the reader."""
        return self._reader.get_batch(self.frames(ticks))
