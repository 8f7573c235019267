# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Files made of the detections of a run."""
from collections import deque
from pathlib import Path

import numpy as np

from ..visualization import VideoWriter
from ..visualization.score_curves import draw_score_curves
from .run import Detection, Run

CAPTION_CLASSES = 3
# A plot shows at most this many seconds, the last ones.
PLOTTED = 3600


class VideoSink:
    """Writes the frames of a run, with the best scores, to an MP4 file."""

    def __init__(self, path: str | Path, run: Run) -> None:
        self._run = run
        self._video = VideoWriter(path, run.source.fps)

    def write(self, detection: Detection) -> None:
        """Write the frames of a step."""
        top = self._run.top_actions(detection.scores, CAPTION_CLASSES)
        lines = [f'{detection.time:.2f} s'] + [
            f'{name}: {score:.3f}' for name, score in top.items()
        ]
        for image in detection.images:
            self._video.write(image, lines)

    def close(self) -> None:
        """Finish the file; without this it cannot be played."""
        self._video.close()


class PlotSink:
    """Plots the scores and events of a run over time, once it has ended.

    Args:
        path: The plot, a png.
        run: The run.
        truth: Ground truth, 0 or 1, [T, K] from the first step of the source.
    """

    def __init__(self, path: str | Path, run: Run,
                 truth: np.ndarray | None = None) -> None:
        self._path = path
        self._run = run
        self._truth = truth
        self._scores: deque[tuple[float, np.ndarray]] = deque(
            maxlen=int(PLOTTED * run.rate))

    def write(self, detection: Detection) -> None:
        """Take the scores of a step."""
        self._scores.append((detection.time, detection.scores))

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
