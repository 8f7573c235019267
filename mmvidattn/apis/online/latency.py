# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from collections import deque
from collections.abc import Mapping

import numpy as np

# As in the paper's Table 7; `total` is what a step costs, and `lag` how long
# after the step's last frame its scores are there.
STAGES = 'decode', 'flow', 'features', 'head', 'total', 'lag'
# Figures are of so many latest steps.
WINDOW = 1000


class Latency:
    """Seconds that steps take, stage by stage."""

    def __init__(self) -> None:
        self._seconds: dict[str, deque[float]] = {
            stage: deque(maxlen=WINDOW) for stage in STAGES
        }

    def add(self, seconds: Mapping[str, float]) -> None:
        """Take the seconds of the stages of a step."""
        for stage, value in seconds.items():
            self._seconds[stage].append(value)

    def report(self) -> dict[str, dict[str, float]]:
        """Of each stage ``median`` and ``p95``, in milliseconds."""
        return {
            stage: dict(
                median=1000 * float(np.median(values)),
                p95=1000 * float(np.quantile(values, 0.95)))
            for stage, values in self._seconds.items() if values
        }
