# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What takes the detections or the events of a run."""
from collections.abc import Callable, Sequence
from typing import Any

from ..detection import Detection


class TryAgain(OSError):
    """Raised by :meth:`Sink.write` to get the same item again.

    Args:
        reason: Reason, for the log.
        seconds: Seconds to wait before.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class Sink:
    """Takes the detections of a run; see :meth:`Run.add_sink`.

    Its methods, but for :meth:`select`, are called from one thread at a time,
    which is not that of the run. They may block and raise.

    Attributes:
        name: Name for users.
        lossless: Whether a recording waits for it.
        queue_size: Items of :meth:`select` that may wait.
        keeps: Items that remain at the end come again with the next run, from
            its :meth:`begin`.
    """
    name = 'sink'
    lossless = False
    queue_size = 256
    keeps = False

    def begin(self) -> Sequence[Any]:
        """Return items for :meth:`write` from before the run."""
        return []

    def select(self, detection: Detection) -> Sequence[Any]:
        """The items of a detection that are for :meth:`write`.

        It is called by the run and must be fast.
        """
        return [detection]

    def write(self, item: Any) -> None:
        """Take an item.

        Raises:
            TryAgain: To get the item again later, before all newer items.
        """
        raise NotImplementedError

    def finish(self, events: Sequence[dict]) -> Sequence[Any]:
        """As :meth:`select`, of the events that ended with the source."""
        return []

    def close(self) -> None:
        """Finish: nothing comes any more."""


class EventSink(Sink):
    """Takes events, one by one, those that end with the source too."""

    def select(self, detection: Detection) -> Sequence[dict]:
        """The events."""
        return detection.events

    def finish(self, events: Sequence[dict]) -> Sequence[dict]:
        """The events."""
        return events


class CallbackSink(EventSink):
    """Calls a function with each event.

    Args:
        function: Takes an event (:class:`EventDetector`).
        name: Name for users.
    """

    def __init__(self, function: Callable[[dict], None],
                 name: str = 'callback') -> None:
        self.name = name
        self._function = function

    def write(self, event: dict) -> None:
        """Call the function."""
        self._function(event)
