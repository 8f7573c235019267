# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Frame times of video files, also at a variable frame rate."""
from typing import Any

import numpy as np

# Share of the shortest intervals between frames that are ignored.
SHORTEST = 0.1
MAX_FPS = 240.


def num_steps(num_frames: int, fps: float, rate: float) -> int:
    """Return the number of complete steps in a video."""
    return int(num_frames / fps * rate + 1e-6)


def middle_frames(steps: np.ndarray | int, fps: float,
                  rate: float) -> np.ndarray:
    """Return the index of the frame in the middle of each step.

    ``fps`` is the number of frames, ``rate`` the number of steps per second.
    """
    return ((np.asarray(steps) + 0.5) / rate * fps).astype(np.int64)


def frame_times(reader: Any) -> np.ndarray:
    """Return the start of each frame and the end of the last one, in seconds.

    The result is [T + 1], ascending. Time starts with the file. With decord's
    reader, it starts with the first frame, and without time stamps, all frames
    have the same duration.
    """
    times = getattr(reader, 'times', None)
    if times is None:
        begins, ends = reader.get_frame_timestamp(np.arange(len(reader))).T
        times = np.append(begins, ends[-1]) - begins[0]
        if (np.diff(times) <= 0).any():
            times = np.arange(len(reader) + 1) / reader.get_avg_fps()
    return times


class ConstantRate:
    """View of a video at a constant frame rate, based on its time stamps.

    If all frames are within one frame of their place at the average rate, the
    video is unchanged. Otherwise, the interval of the view is the 10th
    percentile of the intervals between frames, and at least 1/240 s. Slower
    parts of the video then repeat frames, and faster parts drop frames. The
    first frame is also shown from the start of the file to its own start.

    Args:
        reader: Reader of the video, as in :func:`frame_times`.

    Attributes:
        fps: Frames per second.
    """

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self._times: np.ndarray | None = None
        self.fps = float(reader.get_avg_fps())
        self._length = len(reader)
        times = frame_times(reader)
        numbers = np.arange(len(reader))
        shifts = times[:-1] * self.fps - numbers
        if np.ptp(shifts) > 1 or shifts[0] > 1:
            if len(times) > 2:
                interval = float(np.quantile(np.diff(times[:-1]), SHORTEST))
                self.fps = min(1 / interval, MAX_FPS)
            self._times = times[:-1]
            self._length = int(times[-2] * self.fps + 0.5) + max(
                1, int((times[-1] - times[-2]) * self.fps + 0.5))

    def __len__(self) -> int:
        return self._length

    def frames(self, ticks: np.ndarray | int) -> np.ndarray:
        """Return the frame number for each tick; both count from 0."""
        if self._times is None:
            return np.asarray(ticks)
        # Each frame belongs to the nearest tick.
        return (np.searchsorted(
            self._times, (np.asarray(ticks) + 0.5) / self.fps) - 1).clip(0)

    def get_batch(self, ticks: np.ndarray) -> Any:
        """Return ``get_batch`` of the reader for the frames at ticks."""
        return self._reader.get_batch(self.frames(ticks))
