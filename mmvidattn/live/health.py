# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Health of a run."""
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..sources import Source

# Seconds after which the computation of a step is considered stuck.
STUCK_SECONDS = 60.


class Health:
    """Health of a run; may be read from any thread.

    Args:
        source: Source of the run.

    Attributes:
        failure: Error that ended the run; '' if there was none.
        ended: True if the run has ended without an error.
    """

    def __init__(self, source: Source) -> None:
        self.failure = ''
        self.ended = False
        self._source = source
        self._has_scored = False
        self._busy_since: float | None = None

    @contextmanager
    def watch_step(self) -> Iterator[None]:
        """Watch the computation of a step."""
        self._busy_since = time.monotonic()
        yield
        self._has_scored = True
        self._busy_since = None

    @property
    def is_up(self) -> bool:
        """True if the source gives frames, or has ended without an error."""
        return not self.failure and (
            self.ended or self._source.status in ('running', 'ended'))

    @property
    def is_ready(self) -> bool:
        """True if the source is up, and its first step has been scored."""
        return self.is_up and (self.ended or self._has_scored)

    @property
    def problem(self) -> str:
        """Reason why the run cannot continue; '' if it can."""
        if self.failure:
            return self.failure
        busy_since = self._busy_since
        if busy_since and time.monotonic() - busy_since > STUCK_SECONDS:
            return f'a step has taken longer than {STUCK_SECONDS:g} s'
        return ''
