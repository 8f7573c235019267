# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""When the frames of a video file are shown, also at a varying rate."""
import decord
import numpy as np

# Of the intervals between frames, the share of short ones that do not count.
SHORTEST = 0.1
MAX_FPS = 240.


def frame_times(reader: decord.VideoReader) -> np.ndarray:
    """Seconds at which each frame begins, and at which the last one ends.

    Time begins with the first frame. Of a file without time stamps, as some
    avi are, all frames take the same time.
    """
    numbers = np.arange(len(reader))
    begins, ends = reader.get_frame_timestamp(numbers).T
    times = np.append(begins, ends[-1]) - begins[0]
    if (np.diff(times[:-1]) > 0).all() and times[-1] >= times[-2]:
        return times
    return np.append(numbers, len(reader)) / reader.get_avg_fps()


class ConstantRate:
    """A video as it would be at a constant rate, by its frames' time stamps.

    A video whose frames come at its average rate, to a frame, stays as it is.
    Else the rate is that of its fast parts (nine in ten intervals between
    frames are as long or longer; 240 at most): in slow parts frames are
    repeated, and of frames that are closer some are left out.

    Args:
        reader: The video.

    Attributes:
        fps: Frames a second.
    """

    def __init__(self, reader: decord.VideoReader) -> None:
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

    def get_batch(self, ticks: np.ndarray) -> decord.nd.NDArray:
        """The images at these ticks, as ``VideoReader.get_batch``."""
        return self._reader.get_batch(self.frames(ticks))
