# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sinks, which consume a run's detections or events in own threads."""
import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..bounded_queue import BoundedQueue
from ..steps import Detection

# Seconds after the end of a run in which a sink may process waiting items.
CLOSE_SECONDS = 5.
# Maximum number of different errors that are logged.
MAX_ERRORS = 10


class TryAgain(OSError):
    """Error of :meth:`Sink.write` that requests the same item again.

    Args:
        reason: Reason, for the log.
        seconds: Seconds until the item should be passed again.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class Sink:
    """Consumer of a run's detections; see :meth:`StreamRun.add_sink`.

    All methods except :meth:`select` are called from one thread at a time,
    which is not the run's thread. They may block and raise.

    Attributes:
        name: Name for users.
        lossless: True if a recording waits for the sink.
        queue_size: Maximum number of waiting items.
        keeps: True if items that remain at the end of a run are kept, and
            :meth:`begin` of the next run returns them.
    """
    name = 'sink'
    lossless = False
    queue_size = 256
    keeps = False

    def begin(self) -> Sequence[Any]:
        """Return items of earlier runs for :meth:`write`."""
        return []

    def select(self, detection: Detection) -> Sequence[Any]:
        """Return the items of a detection for :meth:`write`.

        The run's thread calls it, so it must be fast.
        """
        return [detection]

    def write(self, item: Any) -> None:
        """Process an item.

        Raises:
            TryAgain: To request the item again later, before newer items.
        """
        raise NotImplementedError

    def finish(self, events: Sequence[dict]) -> Sequence[Any]:
        """Return the last items for :meth:`write`.

        Args:
            events: Ends of the actions that were in progress when the source
                ended.
        """
        return []

    def close(self) -> None:
        """Finish after the last item."""


class EventSink(Sink):
    """Sink of single events, including those at the end of the source."""

    def select(self, detection: Detection) -> Sequence[dict]:
        return detection.events

    def finish(self, events: Sequence[dict]) -> Sequence[dict]:
        return events


class SinkThread:
    """Thread that passes items from a bounded queue to a sink.

    Args:
        sink: The sink.
        drop: If True, a full queue drops its oldest item, and counts it. If
            False, :meth:`write` waits.
        log: Function that gets a line about each new error, and about items
            that were not delivered. :meth:`StreamRun.report` counts lost
            items.

    Attributes:
        failed: Number of items that the sink failed to process.
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
        """Number of dropped items."""
        return self._queue.dropped

    def write(self, detection: Detection) -> None:
        """Queue the items of a detection."""
        for item in self.sink.select(detection):
            self._put(item)

    def finish(self, events: Sequence[dict]) -> None:
        """Queue the last items; see :meth:`Sink.finish`."""
        for item in self.sink.finish(events):
            self._put(item)

    def close(self) -> None:
        """Wait until the sink has processed the waiting items, and close it.

        If items may be dropped, wait at most :data:`CLOSE_SECONDS`.
        """
        self._queue.close()
        if self._thread.is_alive():
            self._thread.join(CLOSE_SECONDS if self._queue.drop else None)
        hangs = self._thread.is_alive()
        # A sink that hangs has one more item.
        remaining = self._queue.clear() + hangs
        if hangs:
            self._log(f'{self.sink.name} hangs and was abandoned')
        else:
            self._try(self.sink.close)
        if remaining and self.sink.keeps:
            self._log(f'{self.sink.name}: {remaining} not delivered; the next '
                      'start tries again')
        else:
            self._queue.dropped += remaining

    def _put(self, item: Any) -> None:
        if not self._thread.ident:
            self._thread.start()
        self._queue.put(item)

    def _work(self) -> None:
        for item in self._queue:
            is_last_attempt = self._queue.closed
            wait = self._try(self.sink.write, item)
            if wait is not None:
                self._queue.put_back(item, wait)
                if is_last_attempt:
                    return

    def _try(self, function: Callable[..., None], *args: Any) -> float | None:
        """Call a function. Return seconds to wait if it must be repeated."""
        try:
            function(*args)
        except TryAgain as error:
            self._log_once(f'{self.sink.name}: {error}')
            return error.seconds
        except Exception as error:
            # The run continues without this item.
            self.failed += 1
            self._log_once(f'{self.sink.name}: {str(error) or repr(error)}')
        return None

    def _log_once(self, line: str) -> None:
        if line not in self._errors and len(self._errors) < MAX_ERRORS:
            self._errors.add(line)
            self._log(line)


__all__ = ['EventSink', 'Sink', 'TryAgain']
