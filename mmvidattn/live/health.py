# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Health of a run, and the latency of its steps."""
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from ..sources import Source

# Seconds after which the computation of a step is considered stuck.
STUCK_SECONDS = 60.
# Stages as in the paper's Table 7. `total` is the sum of the stages before
# it, and `lag` is the time from a step's last frame to its scores.
STAGES = 'decode', 'flow', 'features', 'head', 'total', 'lag'
# Number of latest steps in a report.
WINDOW = 1000


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


class Latency:
    """Durations of the stages of a run's latest steps."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {
            stage: deque(maxlen=WINDOW) for stage in STAGES
        }

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the seconds of each stage of a step."""
        for stage, value in seconds.items():
            self._seconds[stage].append(value)

    def report(self) -> dict[str, dict[str, float]]:
        """Return ``median`` and ``p95`` of each stage, in milliseconds."""
        return {
            stage: dict(
                median=1000 * float(np.median(values)),
                p95=1000 * float(np.quantile(values, 0.95)))
            for stage, values in self._seconds.items() if values
        }
