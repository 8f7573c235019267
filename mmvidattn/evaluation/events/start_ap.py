# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of the starts of actions."""
from collections.abc import Sequence

import numpy as np

from ...utils.arguments import NotNegative, check_arguments
from .labeled_events import Events, LabeledEvents, check_scores
from .ranking import ClassRankings
from .segment_ap import mean_by_threshold

OFFSETS = tuple(range(1, 11))


@check_arguments
class StartAP(ClassRankings):
    """Point-level average precision of the starts of actions.

    The metric of online detection of action starts (`ODAS
    <https://arxiv.org/abs/1802.06822>`_, `StartNet
    <https://arxiv.org/abs/1903.09868>`_). The predictions of a class, highest
    score first, each take the nearest free annotated start of their video, at
    most ``offset`` seconds before or after. A second prediction of the same
    start is false. Average precision is the area below the interpolated
    precision-recall curve, as in :class:`.SegmentAP`.

    The papers do not define ties; here, predictions with equal scores keep the
    given order, and of two starts at equal distance, the first given one is
    taken. Ends do not matter.

    Args:
        events: Segments.
        offsets: The J offsets in seconds. Defaults to 1, 2, ..., 10.

    Raises:
        ValueError: If a prediction lacks a score.

    Attributes:
        classes: Names of the classes that have annotated segments.
        rankings: :class:`.Ranking` of each of these classes.
    """

    def __init__(self, events: LabeledEvents,
                 offsets: Sequence[NotNegative] = OFFSETS) -> None:
        check_scores(events)
        self.offsets = tuple(offsets)
        predicted, true = events.predicted, events.true
        hit = np.zeros((len(self.offsets), len(predicted)), bool)
        for group in events.groups():
            order = group.predicted[np.argsort(
                -predicted.score[group.predicted], kind='stable')]
            hit[:, order] = _match_starts(
                predicted.select(order), true.select(group.true),
                self.offsets)
        super().__init__(events, np.unique(true.label), hit,
                         np.ones(len(predicted), bool))

    def values(self, weights: np.ndarray | None = None) -> dict[str, float]:
        """Return the mean over classes at each offset, and over all offsets.

        Names are such as 'start_mAP@1s' and 'start_mAP'. Values are nan if no
        segment is annotated.
        """
        return mean_by_threshold('start_mAP@{:g}s', 'start_mAP', self.offsets,
                                 self.average_precision(weights))


def _match_starts(predicted: Events, true: Events,
                  offsets: Sequence[float]) -> np.ndarray:
    """Let each prediction take the nearest free start."""
    hit = np.zeros((len(offsets), len(predicted)), bool)
    if not len(true):
        return hit
    distances = np.abs(predicted.start[:, None] - true.start)
    most, rows = np.array(offsets)[:, None], np.arange(len(offsets))
    free = np.ones((len(offsets), len(true)), bool)
    for i, distance in enumerate(distances):
        allowed = np.where(free & (distance <= most), distance, np.inf)
        best = allowed.argmin(axis=1)
        hit[:, i] = np.isfinite(allowed[rows, best])
        free[rows[hit[:, i]], best[hit[:, i]]] = False
    return hit
