# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What takes the detections of a run, and a thread for it."""
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .run import Detection

# Seconds that a sink has for what waits, once the run has ended.
CLOSE_SECONDS = 5.
# Different errors that are told.
MAX_ERRORS = 10


class Sink:
    """Takes the detections of a run; see :meth:`Run.add_sink`.

    Its methods, but for :meth:`select`, are called from one thread at a time,
    which is not that of the run. They may block and raise.

    Attributes:
        name: Name for users.
        lossless: Whether a recording waits for it.
        queue_size: Items of :meth:`select` that may wait.
    """
    name = 'sink'
    lossless = False
    queue_size = 256

    def select(self, detection: 'Detection') -> Sequence[Any]:
        """The items of a detection that are for :meth:`write`.

        It is called by the run and must be fast.
        """
        return [detection]

    def write(self, item: Any) -> None:
        """Take an item."""
        raise NotImplementedError

    def finish(self, events: Sequence[dict]) -> Sequence[Any]:
        """As :meth:`select`, of the events that ended with the source."""
        return []

    def close(self) -> None:
        """Finish: nothing comes any more."""


class SinkThread:
    """Feeds a sink from a bounded queue, in a thread of its own.

    Args:
        sink: The sink.
        drop: When the queue is full, drop the oldest item and count it;
            otherwise :meth:`write` waits.
        log: Called with a line for the user: on the first item that is
            dropped, on each error when it is new, and with the counts.

    Attributes:
        dropped: Items that were dropped so far.
        failed: Items that the sink could not take.
    """

    def __init__(self, sink: Sink, drop: bool,
                 log: Callable[[str], None]) -> None:
        self.sink = sink
        self.drop = drop
        self.dropped = self.failed = 0
        self._log = log
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._errors: set[str] = set()
        self._thread = threading.Thread(
            target=self._work, name=f'feeds {sink.name}', daemon=True)

    def write(self, detection: 'Detection') -> None:
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
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS if self.drop else None)
        if self._thread.is_alive():
            with self._changed:
                # Of which the one that it hangs at is the first.
                self.dropped += len(self._items) + 1
                self._items.clear()
            self._log(f'{self.sink.name} hangs, and was left behind')
        else:
            self._try(self.sink.close)
        if self.dropped or self.failed:
            self._log(f'{self.sink.name}: {self.dropped} dropped, '
                      f'{self.failed} failed')

    def _put(self, item: Any) -> None:
        with self._changed:
            if not self._thread.ident:
                self._thread.start()
            while len(self._items) >= self.sink.queue_size:
                if self.drop:
                    self._items.popleft()
                    self.dropped += 1
                else:
                    self._changed.wait()
            self._items.append(item)
            self._changed.notify_all()
        if self.dropped == 1:
            self._tell(f'{self.sink.name} is too slow: the oldest are dropped')

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._items and not self._closed:
                    self._changed.wait()
                if not self._items:
                    return
                item = self._items.popleft()
                self._changed.notify_all()
            self._try(self.sink.write, item)

    def _try(self, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:
            # The run goes on without it.
            self.failed += 1
            self._tell(f'{self.sink.name}: {str(error) or repr(error)}')

    def _tell(self, line: str) -> None:
        if line not in self._errors and len(self._errors) < MAX_ERRORS:
            self._errors.add(line)
            self._log(line)
