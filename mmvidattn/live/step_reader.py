# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The thread that reads a source and cuts its frames into steps."""
import threading
import time
from collections.abc import Iterator
from contextlib import closing

from ..sources import Source
from .bounded_queue import BoundedQueue
from .steps import Step, StepMaker

# Seconds that a source has to end after it was told to.
STOP_SECONDS = 5.
# Seconds that the last step of a duration may come late.
GRACE_SECONDS = 1.


class StepReader:
    """Reads a source in a thread of its own; iterate over its steps once.

    When the machine is too slow for a live source, the oldest steps are
    dropped and counted. A recording waits.

    Args:
        source: Source of frames.
        rate: Steps a second.
        reach: Frames that a clip reaches back from its step's last one.
        queue_size: Number of steps that may wait.
        duration: Seconds of the source after which it ends. Defaults to no
            limit.
    """

    def __init__(self, source: Source, rate: float, reach: int,
                 queue_size: int, duration: float | None = None) -> None:
        self.source = source
        self.steps = StepMaker(source.fps, rate, reach)
        self.queue: BoundedQueue[Step] = BoundedQueue(
            queue_size, drop=source.live, check=self._check)
        self._duration = duration
        # When a live source must have ended, by the clock.
        self._deadline: float | None = None

    @property
    def bad_frames(self) -> int:
        """Number of empty frames."""
        return self.steps.bad_frames

    @property
    def dropped(self) -> int:
        """Number of steps that were dropped."""
        return self.queue.dropped

    @property
    def missing(self) -> int:
        """Number of steps of which the source had no frames."""
        return self.steps.missing

    def start_at(self, step: int, dropped: int, missing: int) -> int:
        """Begin with this step.

        Args:
            step: Number of the step.
            dropped: Steps that were dropped before it.
            missing: Steps without frames before it.

        Returns:
            The frame of a recording to read from.
        """
        self.queue.dropped = dropped
        self.steps.missing = missing
        return self.steps.start_at(step)

    def stop(self) -> None:
        """End soon; from any thread."""
        self.source.stop()
        self.queue.close()

    def __iter__(self) -> Iterator[Step]:
        if self._duration is not None and not self.source.recorded:
            begun = self.source.first_frame / self.source.fps
            self._deadline = time.monotonic() + self._duration - begun
        thread = threading.Thread(
            target=self._read, name=f'reads {self.source.name}', daemon=True)
        thread.start()
        try:
            yield from self.queue
        finally:
            self.stop()
            # A source that hangs is left behind.
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
            # Raised where the queue is read.
            self.queue.close(error)
        else:
            self.queue.close()

    def _check(self) -> None:
        """Called while there is no step."""
        if self._deadline is not None and (
                time.monotonic() > self._deadline + GRACE_SECONDS):
            self.source.status = 'ended'
            self.queue.close()
            return
        self.source.check_alive()
