# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import threading
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar('T')


class StepQueue(Generic[T]):
    """A bounded queue between the thread that reads and the one that computes.

    Args:
        size: The most that wait in it.
        drop: When it is full, drop the oldest and count it; otherwise
            :meth:`put` waits.
    """

    def __init__(self, size: int, drop: bool) -> None:
        if size < 1:
            raise ValueError(f'queue_size must be at least 1, got {size}')
        self.size = size
        self.drop = drop
        self.dropped = 0
        self._items: deque[T] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._error: Exception | None = None

    def put(self, item: T) -> bool:
        """Put in an item; returns whether the queue is still open."""
        with self._changed:
            while (len(self._items) >= self.size and not self.drop
                   and not self._closed):
                self._changed.wait()
            if self._closed:
                return False
            if len(self._items) >= self.size:
                self._items.popleft()
                self.dropped += 1
            self._items.append(item)
            self._changed.notify_all()
            return True

    def close(self, error: Exception | None = None) -> None:
        """Say that nothing more will come, and why."""
        with self._changed:
            if not self._closed:
                self._closed, self._error = True, error
            self._changed.notify_all()

    def __iter__(self) -> Iterator[T]:
        """The items until it is closed; then its error is raised."""
        while True:
            with self._changed:
                while not self._items and not self._closed:
                    self._changed.wait()
                if not self._items:
                    if self._error is not None:
                        raise self._error
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            yield item
