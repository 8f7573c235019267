# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
from collections import deque
from collections.abc import Callable, Iterator

from .steps import Step

CHECK_SECONDS = 0.5


class StepQueue:
    """A bounded queue between the thread that reads and the one that computes.

    Args:
        size: Steps that may wait in it.
        drop: When it is full, drop the oldest step and count it; otherwise
            :meth:`put` waits.
        check: Called now and then while there is no step; it raises if none
            will come.

    Attributes:
        dropped: Steps that were dropped so far.
    """

    def __init__(self, size: int, drop: bool,
                 check: Callable[[], None] | None = None) -> None:
        if size < 1:
            raise ValueError(f'queue_size must be at least 1, got {size}')
        self.size = size
        self.drop = drop
        self._check = check
        self.dropped = 0
        self._steps: deque[Step] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._error: Exception | None = None

    def put(self, step: Step) -> bool:
        """Add a step; returns False if the queue is closed."""
        with self._changed:
            while (len(self._steps) >= self.size and not self.drop
                   and not self._closed):
                self._changed.wait()
            if self._closed:
                return False
            if len(self._steps) >= self.size:
                self._steps.popleft()
                self.dropped += 1
            self._steps.append(step)
            self._changed.notify_all()
            return True

    def close(self, error: Exception | None = None) -> None:
        """Take no more steps; those in the queue come before the error."""
        with self._changed:
            if not self._closed:
                self._closed, self._error = True, error
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Step]:
        """The steps until it is closed and empty; then raises its error."""
        while True:
            with self._changed:
                while not self._steps and not self._closed:
                    if not self._changed.wait(CHECK_SECONDS) and self._check:
                        self._check()
                if not self._steps:
                    if self._error is not None:
                        raise self._error
                    return
                step = self._steps.popleft()
                self._changed.notify_all()
            yield step
