# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Mean average precision of scored segments."""
from collections.abc import Sequence
from typing import Literal

import numpy as np

from ...utils.arguments import Share, check_arguments
from .labeled_events import LabeledEvents, check_ends, check_scores
from .ranking import ClassRankings, find_hits, match_in_order

THUMOS14 = .3, .4, .5, .6, .7
ACTIVITYNET = .5, .55, .6, .65, .7, .75, .8, .85, .9, .95


@check_arguments
class SegmentAP(ClassRankings):
    """Mean average precision (mAP) of segments at thresholds of overlap.

    Overlap is the temporal intersection over union (tIoU). There are two
    protocols.

    ``'activitynet'`` is ActivityNet's `evaluation code
    <https://github.com/activitynet/ActivityNet>`_, which recent papers also
    use for THUMOS'14. The predictions of a class, highest score first, each
    take the free annotated segment with the highest overlap, at least the
    threshold. Average precision is the area below the interpolated
    precision-recall curve.

    ``'thumos14'`` is the challenge's own code (``TH14eventdetpr.m``). The
    annotated segments of a video, in the given order, each take the free
    prediction with the highest overlap, above the threshold. Predictions that
    overlap segments of the class 'Ambiguous' are not false. Average precision
    is the mean of 11 points.

    Differs from the published code: predictions with equal scores, and
    segments with equal overlap, keep the given order (published: undefined for
    ActivityNet; correct predictions first for THUMOS'14); segments without
    length have overlap 0 (published: nan); recalls are compared as fractions,
    without rounding errors; a class without annotated segments is not
    part of the mean.

    Args:
        events: Segments.
        thresholds: The J thresholds. Defaults to 0.3, 0.4, ..., 0.7 of
            THUMOS'14.
        protocol: ``'activitynet'`` or ``'thumos14'``. Defaults to
            ``'activitynet'``.

    Raises:
        ValueError: If a segment lacks an end, or a prediction a score.

    Attributes:
        thresholds: The thresholds.
        classes: Names of the classes that have annotated segments.
        rankings: :class:`.Ranking` of each of these classes.
    """

    def __init__(self, events: LabeledEvents,
                 thresholds: Sequence[Share] = THUMOS14,
                 protocol: Literal['activitynet', 'thumos14'] = 'activitynet'
                 ) -> None:
        check_ends(events)
        check_scores(events)
        self.thresholds = tuple(thresholds)
        strict = protocol == 'thumos14'
        match = _match_truth if strict else match_in_order
        predicted, true = events.predicted, events.true
        hit = find_hits(
            events, len(self.thresholds), lambda predicted, true: match(
                predicted.overlaps(true), np.array(self.thresholds)))
        counts = np.ones(len(predicted), bool)
        ambiguous = np.zeros(len(true), bool)
        if strict and 'Ambiguous' in events.classes:
            ambiguous = true.label == events.classes.index('Ambiguous')
            for i in np.flatnonzero(ambiguous):
                counts &= (predicted.video != true.video[i]) | ~(
                    np.minimum(predicted.end, true.end[i])
                    > np.maximum(predicted.start, true.start[i]))
        super().__init__(events, np.unique(true.label[~ambiguous]), hit,
                         counts, '11 points' if strict else 'all')

    def values(self, weights: np.ndarray | None = None) -> dict[str, float]:
        """Return mAP at each threshold, such as 'mAP@0.5', and their mean.

        The mean is named by the first and the last threshold, such as
        'mAP@0.3:0.7'. Values are nan if no segment is annotated.
        """
        return mean_by_threshold(
            'mAP@{:g}', f'mAP@{self.thresholds[0]:g}:{self.thresholds[-1]:g}',
            self.thresholds, self.average_precision(weights))


def mean_by_threshold(name: str, mean_name: str,
                      thresholds: Sequence[float], values: np.ndarray
                      ) -> dict[str, float]:
    """Average values [K, J] over the classes that are not nan."""
    known = values[~np.isnan(values).any(axis=1)]
    means = (known.mean(axis=0) if len(known)
             else np.full(len(thresholds), np.nan))
    averages = {name.format(x): float(y) for x, y in zip(thresholds, means)}
    if len(thresholds) > 1:
        averages[mean_name] = float(means.mean())
    return averages


def _match_truth(overlaps: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Let each segment take the free prediction with the highest overlap.

    See :func:`.match_in_order` for the arguments and the result.
    """
    hit = np.zeros((len(least), len(overlaps)), bool)
    if not overlaps.size:
        return hit
    rows = np.arange(len(least))
    for column in overlaps.T:
        allowed = np.where(hit, -1., column)
        best = allowed.argmax(axis=1)
        matched = allowed[rows, best] > least
        hit[rows[matched], best[matched]] = True
    return hit
