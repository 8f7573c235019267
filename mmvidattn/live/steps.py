# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps of a stream of features, and the frames of a video behind them."""
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..sources import Frame


def num_steps(num_frames: int, fps: float, rate: float) -> int:
    """Number of whole steps in a video."""
    return int(num_frames / fps * rate + 1e-6)


def last_frame(step: int, fps: float, rate: float) -> int:
    """Index of the last frame of a step."""
    return max(0, int(np.ceil((step + 1) / rate * fps - 1e-6)) - 1)


def frame_indices(step: int, fps: float, rate: float, num_frames: int,
                  interval: int) -> np.ndarray:
    """Indices of the frames of a step's clip, oldest first.

    A single frame is the middle one of the step (the 4th of 6, at 24 frames a
    second and 4 Hz). Several end with the last one of the step.
    """
    if num_frames == 1:
        return np.array([int((step + 0.5) / rate * fps)])
    last = last_frame(step, fps, rate)
    return np.maximum(0, last - interval * np.arange(num_frames)[::-1])


def source_frames(indices: np.ndarray, sample_fps: float, fps: float,
                  step: int, rate: float) -> np.ndarray:
    """Frames of a source that stand for those of another rate.

    Frame n at ``sample_fps`` is the latest one that is nearer to it in time
    than to the frame after it, as with ffmpeg's filter ``fps``; none is later
    than the step.

    Args:
        indices: Frames at ``sample_fps``.
        sample_fps: Frames a second that are wanted.
        fps: Frames a second of the source.
        step: The step they are for.
        rate: Steps a second.
    """
    frames = np.ceil((indices + 0.5) / sample_fps * fps - 1e-6).astype(int) - 1
    return frames.clip(0, last_frame(step, fps, rate))


@dataclass(frozen=True)
class Step:
    """A step of a stream, and the frames that its clips are made of.

    Attributes:
        number: Its number, from 0.
        frames: The latest frames up to the end of the step, oldest first.
        num_new: How many of them are of the step itself.
    """
    number: int
    frames: Sequence[Frame]
    num_new: int

    @property
    def new_frames(self) -> Sequence[Frame]:
        """The frames of the step itself, oldest first."""
        return self.frames[len(self.frames) - self.num_new:]

    def images_at(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Images of the frames at these indices, RGB ``(H, W, 3)``.

        The frame before a missing one stands in for it.
        """
        present = [frame.index for frame in self.frames]
        return [
            self.frames[max(0, bisect_right(present, index) - 1)].image
            for index in indices
        ]


class StepMaker:
    """Cuts frames, as they come, into steps.

    Args:
        fps: Frames a second.
        rate: Steps a second, at most ``fps``.
        reach: Frames that a clip reaches back from its step's last one.

    Raises:
        ValueError: If a step would have no frames.

    Attributes:
        missing: Steps without a frame so far.
        bad_frames: Frames that were empty so far.
    """

    def __init__(self, fps: float, rate: float, reach: int) -> None:
        if not fps >= rate:
            raise ValueError(
                f'the source has {fps:g} frames a second, and the model reads '
                f'{rate:g} steps a second: there must be a frame for each')
        self.fps = fps
        self.rate = rate
        self.missing = self.bad_frames = 0
        self._frames: deque[Frame] = deque(
            maxlen=reach + int(np.ceil(fps / rate)) + 1)
        self._step = 0
        self._num_new = 0

    def start_at(self, step: int) -> int:
        """Begin with this step; returns the frame to read from.

        The frames up to the step are only for its clips and those after it.
        """
        self._step = step
        return max(0, self._before(step) + 1 - self._frames.maxlen)

    def _before(self, step: int) -> int:
        """The last frame before a step; -1 if there is none."""
        return last_frame(step - 1, self.fps, self.rate) if step else -1

    def add(self, frame: Frame) -> list[Step]:
        """Take a frame; an empty one is as one that is missing.

        Returns:
            The steps with frames that end with it or before it: none, one or
            two.
        """
        advance = frame.index - self._frames[-1].index if self._frames else 1
        if not np.size(frame.image):
            self.bad_frames += 1
            return []
        if advance < 1:
            return []
        steps = []
        if frame.index > last_frame(self._step, self.fps, self.rate):
            steps += self._finish()
            step = num_steps(frame.index, self.fps, self.rate)
            self.missing += step - self._step - len(steps)
            self._step = step
        if advance > self._frames.maxlen:
            # Too old to stand in for missing ones.
            self._frames.clear()
        self._frames.append(frame)
        self._num_new += frame.index > self._before(self._step)
        if frame.index == last_frame(self._step, self.fps, self.rate):
            steps += self._finish()
            self._step += 1
        return steps

    def _finish(self) -> list[Step]:
        num_new, self._num_new = self._num_new, 0
        if not num_new:
            return []
        return [Step(self._step, tuple(self._frames), num_new)]
