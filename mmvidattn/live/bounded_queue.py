# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Queue of steps or of a sink's items between two threads."""
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Item = TypeVar('Item')
# Seconds between calls of `check`.
CHECK_SECONDS = 0.5


class BoundedQueue(Generic[Item]):
    """A queue of limited size between two threads.

    Args:
        size: Maximum number of waiting items.
        drop: If True, a full queue drops its oldest item, and counts it. If
            False, :meth:`put` waits.
        check: Function that is called every :data:`CHECK_SECONDS` while the
            queue is empty. It should raise an error if no more items will
            come.

    Attributes:
        dropped: Number of dropped items.
        closed: True if the queue is closed.
    """

    def __init__(self, size: int, drop: bool,
                 check: Callable[[], None] | None = None) -> None:
        self.size = size
        self.drop = drop
        self.dropped = 0
        self.closed = False
        self._check = check
        self._items: deque[Item] = deque()
        self._changed = threading.Condition()
        self._error: Exception | None = None

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item) -> bool:
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

    def put_back(self, item: Item, seconds: float) -> None:
        """Put the item that was taken last back to the front, and wait.

        Args:
            item: The item.
            seconds: Seconds to wait. Closing the queue ends the wait.
        """
        with self._changed:
            self._items.appendleft(item)
            self._changed.wait_for(lambda: self.closed, seconds)

    def close(self, error: Exception | None = None) -> None:
        """Refuse further items.

        Args:
            error: Error to raise from the iteration, after all waiting items.
        """
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

    def __iter__(self) -> Iterator[Item]:
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
