# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Result of one step of a live detector."""
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Detection:
    """Scores, events and frames of one step.

    Attributes:
        step: Number of the step, from 0. Numbers of dropped steps and of steps
            without frames are skipped.
        time: End of the step, in seconds of the source.
        scores: Class probabilities of this step, [K]; 0 for the class that
            training ignored.
        anticipated: Class probabilities of the next steps, nearest first,
            [A, K]; A = 0 for a clip model.
        events: Actions that started or ended (:class:`EventDetector`).
        images: Frames of the step, RGB ``(H, W, 3)``, oldest first.
        seconds: Duration of each stage (:class:`Latency`).
        active_since: Start of the oldest action in progress, even if it is not
            reported yet; None if no action is in progress.
    """
    step: int
    time: float
    scores: np.ndarray
    anticipated: np.ndarray
    events: Sequence[dict]
    images: Sequence[np.ndarray]
    seconds: Mapping[str, float]
    active_since: float | None = None
