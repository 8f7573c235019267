# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections import deque
from collections.abc import Mapping

import numpy as np

# As in the paper's Table 7. `total` is the sum of those before it, and `lag`
# the time from a step's last frame to its scores.
STAGES = 'decode', 'flow', 'features', 'head', 'total', 'lag'
# Number of latest steps that a report is about.
WINDOW = 1000


class Latency:
    """Durations of the latest steps, stage by stage."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {
            stage: deque(maxlen=WINDOW) for stage in STAGES
        }

    def add(self, seconds: Mapping[str, float]) -> None:
        """Take the seconds of each stage of a step."""
        for stage, value in seconds.items():
            self._seconds[stage].append(value)

    def report(self) -> dict[str, dict[str, float]]:
        """``median`` and ``p95`` of each stage, in milliseconds."""
        return {
            stage: dict(
                median=1000 * float(np.median(values)),
                p95=1000 * float(np.quantile(values, 0.95)))
            for stage, values in self._seconds.items() if values
        }
