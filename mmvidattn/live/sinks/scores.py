# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Folder of the scores of all steps."""
import threading
from pathlib import Path

import numpy as np

from ...online.frame_scores import (
    FILE,
    FrameScores,
    ScoredVideos,
    read_frame_scores,
)
from ..detection import Detection
from ..run import Run
from .base import Sink

# Runs of several sources write to one folder.
_LOCK = threading.Lock()


class ScoreSink(Sink):
    """Sink that adds the scores of a run to a folder at its end.

    Steps that were dropped or missing have the scores of the step before, or
    of the first step. Other sources in the folder are kept
    (:meth:`~mmvidattn.online.frame_scores.ScoredVideos.write`).

    Args:
        folder: The folder.
        run: The run.

    Raises:
        ValueError: If the folder has scores of other classes.
    """
    lossless = True

    def __init__(self, folder: str | Path, run: Run) -> None:
        self.name = str(folder)
        self._folder = Path(folder)
        self._run = run
        self._steps: list[int] = []
        self._scores: list[np.ndarray] = []
        self._read()

    def write(self, detection: Detection) -> None:
        """Keep the scores of a step."""
        self._steps.append(detection.step)
        self._scores.append(np.asarray(detection.scores, np.float32))

    def close(self) -> None:
        """Write the scores, if there are any."""
        if not self._steps:
            return
        number = np.diff([*self._steps, self._steps[-1] + 1])
        number[0] += self._steps[0]
        scores = np.repeat(np.array(self._scores), number, axis=0)
        with _LOCK:
            scored = self._read()
            scored.videos[self._run.source.name] = FrameScores(
                self._run.rate, scores)
            scored.write(self._folder)

    def _read(self) -> ScoredVideos:
        """Return the scores in the folder."""
        classes, ignore = list(self._run.classes), set(self._run.ignore)
        if not (self._folder / FILE).exists():
            return ScoredVideos(classes, ignore)
        found = read_frame_scores(self._folder)
        if found.classes != classes:
            raise ValueError(f'{self._folder} has scores of other classes; '
                             'choose another folder')
        return found
