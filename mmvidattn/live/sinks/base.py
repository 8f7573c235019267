# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Base classes of sinks, which consume a run's detections or events."""
from collections.abc import Sequence
from typing import Any

from ..detection import Detection


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
    """Consumer of a run's detections; see :meth:`Run.add_sink`.

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
