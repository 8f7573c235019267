# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of the starts of actions."""
from collections.abc import Sequence

import numpy as np

from ...utils.arguments import NotNegative, check_arguments
from .labeled_events import LabeledEvents, check_scores
from .ranking import ClassRankings, find_hits, match_in_order
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
        hit = find_hits(
            events, len(self.offsets), lambda predicted, true: match_in_order(
                -np.abs(predicted.start[:, None] - true.start),
                -np.array(self.offsets, float)))
        super().__init__(events, np.unique(events.true.label), hit,
                         np.ones(len(events.predicted), bool))

    def values(self, weights: np.ndarray | None = None) -> dict[str, float]:
        """Return the mean over classes at each offset, and over all offsets.

        The result is keyed by names such as 'start_mAP@1s' and 'start_mAP'.
        Values are nan if no segment is annotated.
        """
        return mean_by_threshold('start_mAP@{:g}s', 'start_mAP', self.offsets,
                                 self.average_precision(weights))
