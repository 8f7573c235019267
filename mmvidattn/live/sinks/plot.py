# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Plot of a run's scores."""
from collections import deque
from pathlib import Path

import numpy as np

from ...visualization.score_curves import draw_score_curves
from ..detection import Detection
from ..run import Run
from .base import Sink

# Maximum number of seconds in a plot. Earlier seconds are left out.
PLOTTED = 3600


class PlotSink(Sink):
    """Sink that plots the scores and events of a run at its end.

    Args:
        path: Path of the plot, a png file.
        run: The run.
        truth: Ground truth of 0 and 1, [T, K], from the source's first step.
    """
    lossless = True

    def __init__(self, path: str | Path, run: Run,
                 truth: np.ndarray | None = None) -> None:
        self.name = str(path)
        self._path = path
        self._run = run
        self._truth = truth
        self._scores: deque[tuple[float, np.ndarray]] = deque(
            maxlen=int(PLOTTED * run.rate))

    def select(self,
               detection: Detection) -> list[tuple[float, np.ndarray]]:
        return [(detection.time, detection.scores)]

    def write(self, item: tuple[float, np.ndarray]) -> None:
        self._scores.append(item)

    def close(self) -> None:
        """Draw the plot, if there are any scores."""
        if not self._scores:
            return
        run = self._run
        times, scores = map(np.array, zip(*self._scores))
        draw_score_curves(
            self._path, times, scores, run.classes, run.rate, self._truth,
            [e for e in run.events.recent if e['event'] == 'end'], run.ignore,
            run.source.name)
