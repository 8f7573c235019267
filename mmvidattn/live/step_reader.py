# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Steps of a stream: their frames, and the thread and queue of a source."""
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..sources import MAX_GAP, Frame, Source
from ..utils.frame_times import middle_frames, num_steps

# Seconds to wait for a source to stop.
STOP_SECONDS = 5.
# Seconds between calls of `BoundedQueue.check`.
CHECK_SECONDS = 0.5


def last_frame(step: int, fps: float, rate: float) -> int:
    """Return the index of the last frame of a step."""
    return max(0, int(np.ceil((step + 1) / rate * fps - 1e-6)) - 1)


def frame_indices(step: int, fps: float, rate: float, num_frames: int,
                  interval: int) -> np.ndarray:
    """Return the indices of the frames of a step's clip, oldest first.

    A clip of one frame has the frame in the middle of the step, the 4th of 6.
    A longer clip ends with the last frame of the step.
    """
    if num_frames == 1:
        return middle_frames([step], fps, rate)
    last = last_frame(step, fps, rate)
    return np.maximum(0, last - interval * np.arange(num_frames)[::-1])


def source_frames(indices: np.ndarray, sample_fps: float, fps: float,
                  step: int, rate: float) -> np.ndarray:
    """Convert frame indices from ``sample_fps`` to the rate of a source.

    Frame n at ``sample_fps`` becomes the latest source frame that is closer
    in time to n than to n + 1, as in ffmpeg's filter ``fps``. No frame is
    later than the step, of ``rate`` steps per second.
    """
    frames = np.ceil((indices + 0.5) / sample_fps * fps - 1e-6).astype(int) - 1
    return frames.clip(0, last_frame(step, fps, rate))


@dataclass(frozen=True)
class Step:
    """A step of a stream, with the frames for its clips.

    Attributes:
        number: Number of the step, from 0.
        frames: Latest frames up to the end of the step, oldest first.
        num_new: Number of these frames that belong to the step itself.
        jumped_back: True if the time of the source jumped back in the step.
    """
    number: int
    frames: Sequence[Frame]
    num_new: int
    jumped_back: bool = False

    @property
    def new_frames(self) -> Sequence[Frame]:
        """Frames of the step itself, oldest first."""
        return self.frames[len(self.frames) - self.num_new:]

    def images_at(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Return the images at these frame indices, RGB ``(H, W, 3)``.

        A missing frame is replaced by the previous frame.
        """
        present = [frame.index for frame in self.frames]
        return [
            self.frames[max(0, bisect_right(present, index) - 1)].image
            for index in indices
        ]


class StepMaker:
    """Group the frames of a stream into steps of 1 / ``rate`` seconds.

    Args:
        fps: Frames per second.
        rate: Steps per second, at most ``fps``.
        reach: Number of frames that clips need before the last frame of a
            step.
        max_gap: Longest gap in seconds that a clip may span.

    Raises:
        ValueError: If ``fps`` is less than ``rate``.

    Attributes:
        missing: Number of steps without a frame.
        bad_frames: Number of empty frames.
    """

    def __init__(self, fps: float, rate: float, reach: int,
                 max_gap: float = MAX_GAP) -> None:
        if not fps >= rate:
            raise ValueError(
                f'fps of the source must be at least the {rate:g} steps per '
                f'second of the model, got {fps:g}')
        self.fps = fps
        self.rate = rate
        self.missing = self.bad_frames = 0
        self._frames: deque[Frame] = deque(
            maxlen=reach + int(np.ceil(fps / rate)) + 1)
        self._max_gap = min(self._frames.maxlen, max_gap * fps)
        self._step = 0
        self._num_new = 0
        self._jumped_back = False

    def start_at(self, step: int) -> int:
        """Start at a later step. Return the index of the first frame to read.

        Frames before the step only serve as context for clips.
        """
        self._step = step
        return max(0, self._before(step) + 1 - self._frames.maxlen)

    def _before(self, step: int) -> int:
        """Return the index of the last frame before a step, or -1."""
        return last_frame(step - 1, self.fps, self.rate) if step else -1

    def add(self, frame: Frame) -> list[Step]:
        """Add a frame; an empty frame counts as missing.

        Returns:
            Steps with frames that the frame completes: none, one or two.
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
        if advance > self._max_gap or frame.jumped_back:
            # Earlier frames cannot replace missing ones.
            self._frames.clear()
            self._num_new = 0
        self._jumped_back |= frame.jumped_back
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
        jumped_back, self._jumped_back = self._jumped_back, False
        return [Step(self._step, tuple(self._frames), num_new, jumped_back)]


@dataclass(frozen=True)
class Detection:
    """Scores, events and frames of one step.

    Attributes:
        step: Number of the step, from 0. Numbers of dropped steps and of steps
            without frames are skipped.
        time: End of the step, in seconds of the source.
        scores: Class probabilities of this step, [K]; 0 for the class that
            training ignored.
        anticipated: Class probabilities of the next steps, nearest first,
            [A, K]; A = 0 for a clip model.
        events: Actions that started or ended (:class:`EventDetector`).
        images: Frames of the step, RGB ``(H, W, 3)``, oldest first.
        seconds: Duration of each stage (:data:`mmvidattn.live.run.STAGES`).
        active_since: Start of the oldest action in progress, even if it is not
            reported yet; None if no action is in progress.
    """
    step: int
    time: float
    scores: np.ndarray
    anticipated: np.ndarray
    events: Sequence[dict]
    images: Sequence[np.ndarray]
    seconds: Mapping[str, float]
    active_since: float | None = None


class BoundedQueue:
    """A queue of limited size between two threads.

    Args:
        size: Maximum number of waiting items.
        drop: If True, a full queue drops its oldest item, and counts it in
            ``dropped``. If False, :meth:`put` waits.
        check: Function that is called every :data:`CHECK_SECONDS` while the
            queue is empty. It raises an error if no more items will come.
    """

    def __init__(self, size: int, drop: bool,
                 check: Callable[[], None] | None = None) -> None:
        self.size = size
        self.drop = drop
        self.dropped = 0
        self.closed = False
        self._check = check
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._error: Exception | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Any) -> bool:
        """Add an item. Return False if the queue is closed."""
        with self._changed:
            while (len(self._items) >= self.size and not self.drop
                   and not self.closed):
                self._changed.wait()
            if self.closed:
                return False
            if len(self._items) >= self.size:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify_all()
            return True

    def put_back(self, item: Any, seconds: float) -> None:
        """Put an item back to the front, and wait unless the queue closes."""
        with self._changed:
            self._items.appendleft(item)
            self._changed.wait_for(lambda: self.closed, seconds)

    def close(self, error: Exception | None = None) -> None:
        """Refuse further items; raise ``error`` after all waiting items."""
        with self._changed:
            if not self.closed:
                self.closed, self._error = True, error
            self._changed.notify_all()

    def clear(self) -> int:
        """Remove all items, and return their number."""
        with self._changed:
            number = len(self._items)
            self._items.clear()
            return number

    def __iter__(self) -> Iterator[Any]:
        """Take items until the queue is closed and empty."""
        while True:
            with self._changed:
                while not self._items and not self.closed:
                    if not self._changed.wait(CHECK_SECONDS) and self._check:
                        self._check()
                if not self._items:
                    if self._error is not None:
                        raise self._error
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item


class StepReader:
    """Reader of a source's frames, which it groups into steps in a thread.

    Iterating over it yields the steps; this is possible once. If the machine
    is too slow for a live source, the oldest steps are dropped and counted. A
    recording waits instead.

    Attributes:
        steps: Object that groups frames to steps, and counts missing steps.
        queue: Queue of steps, which counts dropped steps.
    """

    def __init__(self, source: Source, rate: float, reach: int,
                 queue_size: int, max_gap: float) -> None:
        self.source = source
        self.steps = StepMaker(source.fps, rate, reach, max_gap)
        self.queue = BoundedQueue(
            queue_size, drop=source.live, check=source.check_alive)

    def start_at(self, step: int, dropped: int, missing: int) -> int:
        """Start at a later step, after so many dropped and missing steps.

        Returns the index of the frame at which a recording must start.
        """
        self.queue.dropped = dropped
        self.steps.missing = missing
        return self.steps.start_at(step)

    def stop(self) -> None:
        """Request the end; may be called from any thread."""
        self.source.stop()
        self.queue.close()

    def __iter__(self) -> Iterator[Step]:
        thread = threading.Thread(
            target=self._read, name=f'reads {self.source.name}', daemon=True)
        thread.start()
        try:
            yield from self.queue
        finally:
            self.stop()
            # Abandon the thread if the source hangs.
            thread.join(STOP_SECONDS)

    def _read(self) -> None:
        try:
            with closing(iter(self.source)) as frames:
                for frame in frames:
                    for step in self.steps.add(frame):
                        if not self.queue.put(step):
                            return
        except Exception as error:
            # Iterating over the queue raises it.
            self.queue.close(error)
        else:
            self.queue.close()
