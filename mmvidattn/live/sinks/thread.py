# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""The thread in which a sink takes what a run gives it."""
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..bounded_queue import BoundedQueue
from ..detection import Detection
from .base import Sink, TryAgain

# Seconds that a sink has for what waits, once the run has ended.
CLOSE_SECONDS = 5.
# Number of different errors that are logged.
MAX_ERRORS = 10


class SinkThread:
    """Feeds a sink from a bounded queue, in a thread of its own.

    Args:
        sink: The sink.
        drop: Whether a full queue drops its oldest item and counts it.
            Otherwise :meth:`write` waits.
        log: Called with a line for the user: on the first item that is
            dropped, on each error when it is new, and with the counts.

    Attributes:
        failed: Number of items that the sink could not take.
    """

    def __init__(self, sink: Sink, drop: bool,
                 log: Callable[[str], None]) -> None:
        self.sink = sink
        self.failed = 0
        self._log = log
        self._queue: BoundedQueue[Any] = BoundedQueue(sink.queue_size, drop)
        self._errors: set[str] = set()
        self._thread = threading.Thread(
            target=self._work, name=f'feeds {sink.name}', daemon=True)
        for item in sink.begin():
            self._put(item)

    @property
    def dropped(self) -> int:
        """Number of items that were dropped so far."""
        return self._queue.dropped

    def write(self, detection: Detection) -> None:
        """Give it a detection."""
        for item in self.sink.select(detection):
            self._put(item)

    def finish(self, events: Sequence[dict]) -> None:
        """Give it the events that ended with the source."""
        for item in self.sink.finish(events):
            self._put(item)

    def close(self) -> None:
        """Let it take what waits, and close it.

        One that drops items has :data:`CLOSE_SECONDS` for that.
        """
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS if self._queue.drop else None)
        hangs = self._thread.is_alive()
        # It may hang at one more.
        left = self._queue.clear() + hangs
        if hangs:
            self._log(f'{self.sink.name} hangs, and was left behind')
        else:
            self._try(self.sink.close)
        if left and self.sink.keeps:
            self._log(f'{self.sink.name}: {left} not delivered; the next '
                      'start tries again')
        else:
            self._queue.dropped += left
        if self.dropped or self.failed:
            self._log(f'{self.sink.name}: {self.dropped} dropped, '
                      f'{self.failed} failed')

    def _put(self, item: Any) -> None:
        if not self._thread.ident:
            self._thread.start()
        self._queue.put(item)
        if self.dropped == 1:
            self._tell(f'{self.sink.name} is too slow: the oldest are dropped')

    def _work(self) -> None:
        for item in self._queue:
            is_last_attempt = self._queue.closed
            wait = self._try(self.sink.write, item)
            if wait is not None:
                self._queue.put_back(item, wait)
                if is_last_attempt:
                    return

    def _try(self, function: Callable[..., None], *args: Any) -> float | None:
        """Call a function; returns seconds to wait if it must be repeated."""
        try:
            function(*args)
        except TryAgain as error:
            self._tell(f'{self.sink.name}: {error}')
            return error.seconds
        except Exception as error:
            # The run goes on without it.
            self.failed += 1
            self._tell(f'{self.sink.name}: {str(error) or repr(error)}')
        return None

    def _tell(self, line: str) -> None:
        if line not in self._errors and len(self._errors) < MAX_ERRORS:
            self._errors.add(line)
            self._log(line)
