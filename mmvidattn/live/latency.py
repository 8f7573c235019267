# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping

import numpy as np

# Stages as in the paper's Table 7. `total` is the sum of the stages before
# it, and `lag` is the time from a step's last frame to its scores.
STAGES = 'decode', 'flow', 'features', 'head', 'total', 'lag'
# Number of latest steps in a report.
WINDOW = 1000
# Upper bounds of a histogram's bins, in seconds; the last bin is open.
BOUNDS = .005, .01, .025, .05, .1, .25, .5, 1., 2.5, 5., 10., 30.


class Latency:
    """Durations of the stages of a run's steps.

    Attributes:
        counts: Number of steps in each bin of :data:`BOUNDS`, by stage.
        sums: Total seconds of all steps, by stage.
    """

    def __init__(self) -> None:
        self.counts = {stage: [0] * (len(BOUNDS) + 1) for stage in STAGES}
        self.sums = dict.fromkeys(STAGES, 0.)
        self._seconds: dict[str, deque[float]] = {
            stage: deque(maxlen=WINDOW) for stage in STAGES
        }

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add the seconds of each stage of a step."""
        for stage, value in seconds.items():
            self._seconds[stage].append(value)
            self.counts[stage][bisect_left(BOUNDS, value)] += 1
            self.sums[stage] += value

    def report(self) -> dict[str, dict[str, float]]:
        """Return ``median`` and ``p95`` of each stage, in milliseconds."""
        return {
            stage: dict(
                median=1000 * float(np.median(values)),
                p95=1000 * float(np.quantile(values, 0.95)))
            for stage, values in self._seconds.items() if values
        }
