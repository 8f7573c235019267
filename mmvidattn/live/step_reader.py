# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Thread that reads a source and cuts its frames into steps."""
import threading
import time
from collections.abc import Iterator
from contextlib import closing

from ..sources import Source
from .bounded_queue import BoundedQueue
from .steps import Step, StepMaker

# Seconds to wait for a source to stop.
STOP_SECONDS = 5.
# Maximum delay in seconds of the last step of a duration.
GRACE_SECONDS = 1.


class StepReader:
    """Reader of a source's frames, which it groups into steps in a thread.

    Iterating over it yields the steps; this is possible once. If the machine
    is too slow for a live source, the oldest steps are dropped and counted. A
    recording waits instead.

    Args:
        source: Source of frames.
        rate: Steps per second.
        reach: Number of frames that clips need before the last frame of a
            step.
        queue_size: Maximum number of waiting steps.
        duration: Seconds of the source after which the reader ends. Defaults
            to no limit.

    Attributes:
        steps: Object that groups frames to steps, and counts missing steps.
        queue: Queue of steps, which counts dropped steps.
    """

    def __init__(self, source: Source, rate: float, reach: int,
                 queue_size: int, duration: float | None = None) -> None:
        self.source = source
        self.steps = StepMaker(source.fps, rate, reach)
        self.queue: BoundedQueue[Step] = BoundedQueue(
            queue_size, drop=source.live, check=self._check)
        self._duration = duration
        # Monotonic time at which a live source must have ended.
        self._deadline: float | None = None

    def start_at(self, step: int, dropped: int, missing: int) -> int:
        """Start at a later step.

        Args:
            step: Number of the step.
            dropped: Number of earlier steps that were dropped.
            missing: Number of earlier steps without a frame.

        Returns:
            Index of the frame at which a recording must start.
        """
        self.queue.dropped = dropped
        self.steps.missing = missing
        return self.steps.start_at(step)

    def stop(self) -> None:
        """Request the end; may be called from any thread."""
        self.source.stop()
        self.queue.close()

    def __iter__(self) -> Iterator[Step]:
        if self._duration is not None and not self.source.recorded:
            elapsed = self.source.first_frame / self.source.fps
            self._deadline = time.monotonic() + self._duration - elapsed
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
        end = None
        if self._duration is not None:
            end = round(self._duration * self.source.fps)
        try:
            with closing(iter(self.source)) as frames:
                for frame in frames:
                    if end is not None and frame.index >= end:
                        self.source.status = 'ended'
                        break
                    for step in self.steps.add(frame):
                        if not self.queue.put(step):
                            return
        except Exception as error:
            # Iterating over the queue raises it.
            self.queue.close(error)
        else:
            self.queue.close()

    def _check(self) -> None:
        """Check the source while no step arrives."""
        if self._deadline is not None and (
                time.monotonic() > self._deadline + GRACE_SECONDS):
            self.source.status = 'ended'
            self.queue.close()
            return
        self.source.check_alive()
