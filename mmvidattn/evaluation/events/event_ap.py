# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of segments and of starts, for resampled videos."""
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from ...utils.arguments import NotNegative, Share, check_arguments
from .labeled_events import Events, LabeledEvents, VideoMetric, check_ends

THUMOS14 = .3, .4, .5, .6, .7
ACTIVITYNET = .5, .55, .6, .65, .7, .75, .8, .85, .9, .95
OFFSETS = tuple(range(1, 11))
PROTOCOLS = 'activitynet', 'thumos14'
AMBIGUOUS = 'Ambiguous'


# Predictions of one class, highest score first, at J thresholds: index of the
# video, int [N]; True if it is correct, bool [J, N]; True if it counts, bool
# [N], unlike predictions at ambiguous annotations; and the number of annotated
# segments in each video, [V].
Ranking = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def interpolated_precision(ranking: Ranking, weights: np.ndarray,
                           eleven_points: bool) -> np.ndarray:
    """Return the interpolated average precision at each threshold, [J].

    Precision is replaced by the highest precision at the same or a higher
    recall. The result is the area below this curve, or its mean at recall
    0, 0.1, ..., 1 with ``eleven_points``. It is nan if no annotated segment
    counts.

    Args:
        ranking: Predictions and number of annotated segments.
        weights: Number of times that each video counts, [V].
        eleven_points: See above.
    """
    video, hit, counts, positives = ranking
    positives = (positives * weights).sum()
    if not positives:
        return np.full(len(hit), np.nan)
    weight = weights[video]
    hits = np.cumsum(hit * weight, axis=1)
    total = np.cumsum((hit | counts) * weight, axis=1)
    precision = np.divide(hits, total, out=np.zeros_like(hits, float),
                          where=total > 0)
    best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    if not eleven_points:
        return (hit * weight * best).sum(axis=1) / positives
    # In whole numbers, because 0.1 * 3 != 0.3. Precision is 0 beyond the
    # highest recall.
    tenths = np.arange(11) * positives
    return np.array([
        row[np.searchsorted(10 * found, tenths)].mean()
        for found, row in zip(hits, np.pad(best, ((0, 0), (0, 1))))])


def match(closeness: np.ndarray, least: np.ndarray, strict: bool = False
          ) -> tuple[np.ndarray, np.ndarray]:
    """Let each row, in order, take the closest free column.

    Args:
        closeness: Closeness of each row to each column, [R, C].
        least: Least closeness at J thresholds, [J].
        strict: The closeness must be above the least one.

    Returns:
        Rows that took a column, bool [J, R], and columns that were taken,
        bool [J, C].
    """
    hit = np.zeros((len(least), len(closeness)), bool)
    free = np.ones((len(least), closeness.shape[1]), bool)
    if not closeness.size:
        return hit, ~free
    rows = np.arange(len(least))
    for i in np.flatnonzero(closeness.max(axis=1) >= least.min()):
        near = (np.greater if strict else np.greater_equal)(
            closeness[i], least[:, None])
        allowed = np.where(free & near, closeness[i], -np.inf)
        best = allowed.argmax(axis=1)
        hit[:, i] = np.isfinite(allowed[rows, best])
        free[rows[hit[:, i]], best[hit[:, i]]] = False
    return hit, ~free


class ClassRankings(VideoMetric):
    """Rankings of all classes, and their average precision.

    Args:
        events: Segments.
        thresholds: The J thresholds.
        least: Least closeness at these thresholds, [J].
        closeness: Function that returns the closeness of P predictions and G
            annotated segments of one class in one video, [P, G].
        is_thumos14: Follow THUMOS'14; see :class:`SegmentAP`. Defaults to
            False.

    Attributes:
        classes: Names of the K' classes that have annotated segments.
        rankings: ``Ranking`` of each of these classes.
    """
    # Names of the value at a threshold, and of the mean.
    names: tuple[str, str]

    def __init__(self, events: LabeledEvents, thresholds: Sequence[float],
                 least: np.ndarray,
                 closeness: Callable[[Events, Events], np.ndarray],
                 is_thumos14: bool = False) -> None:
        missing = int(np.isnan(events.predicted.score).sum())
        if missing:
            raise ValueError('average precision needs the score of each '
                             f'prediction, and {missing} of '
                             f'{len(events.predicted)} predictions have none')
        self.thresholds = tuple(thresholds)
        self.is_thumos14 = is_thumos14
        self.num_videos = len(events.videos)
        true, predicted = events.true, events.predicted.select(
            np.argsort(-events.predicted.score, kind='stable'))
        hit = np.zeros((len(least), len(predicted)), bool)
        for _, mine, theirs in replace(events, predicted=predicted).groups():
            close = closeness(predicted.select(mine), true.select(theirs))
            hit[:, mine] = match(close.T, least, True)[1] if is_thumos14 \
                else match(close, least)[0]
        counts = np.ones(len(predicted), bool)
        ambiguous = np.zeros(len(true), bool)
        if is_thumos14 and AMBIGUOUS in events.classes:
            ambiguous = true.label == events.classes.index(AMBIGUOUS)
            for i in np.flatnonzero(ambiguous):
                counts &= (predicted.video != true.video[i]) | ~(
                    np.minimum(predicted.end, true.end[i])
                    > np.maximum(predicted.start, true.start[i]))
        self.classes, self.rankings = [], []
        for label in np.unique(true.label[~ambiguous]):
            own = predicted.label == label
            self.classes.append(events.classes[label])
            self.rankings.append((
                predicted.video[own], hit[:, own], counts[own],
                np.bincount(true.video[true.label == label],
                            minlength=self.num_videos)))

    def average_precision(self, weights: np.ndarray | None = None
                          ) -> np.ndarray:
        """Return the average precision of each class and threshold, [K', J].

        See :meth:`values` for the argument.
        """
        weights = self._once() if weights is None else weights
        return np.array([
            interpolated_precision(ranking, weights, self.is_thumos14)
            for ranking in self.rankings]).reshape(
                len(self.rankings), len(self.thresholds))

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        each = self.average_precision(weights)
        known = each[~np.isnan(each).any(axis=1)]
        means = (known.mean(axis=0) if len(known)
                 else np.full(len(self.thresholds), np.nan))
        values = {self.names[0].format(threshold): float(mean)
                  for threshold, mean in zip(self.thresholds, means)}
        if len(means) > 1:
            values[self.names[1].format(*self.thresholds[::len(means) - 1])
                   ] = float(means.mean())
        return values


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

    The values are mAP at each threshold, such as 'mAP@0.5', and their mean,
    named by the first and the last threshold, such as 'mAP@0.3:0.7'.

    Args:
        events: Segments.
        thresholds: The J thresholds. Defaults to 0.3, 0.4, ..., 0.7 of
            THUMOS'14.
        protocol: ``'activitynet'`` or ``'thumos14'``. Defaults to
            ``'activitynet'``.

    Raises:
        ValueError: If a segment lacks an end, or a prediction a score.
    """
    names = 'mAP@{:g}', 'mAP@{:g}:{:g}'

    def __init__(self, events: LabeledEvents,
                 thresholds: Sequence[Share] = THUMOS14,
                 protocol: Literal[PROTOCOLS] = 'activitynet'
                 ) -> None:
        check_ends(events)
        super().__init__(events, thresholds, np.array(thresholds),
                         Events.overlaps, protocol == 'thumos14')


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
    taken. Ends do not matter. The values are the means over the classes at
    each offset, such as 'start_mAP@1s', and over all offsets, 'start_mAP'.

    Args:
        events: Segments.
        offsets: The J offsets in seconds. Defaults to 1, 2, ..., 10.
    """
    names = 'start_mAP@{:g}s', 'start_mAP'

    def __init__(self, events: LabeledEvents,
                 offsets: Sequence[NotNegative] = OFFSETS) -> None:
        super().__init__(
            events, offsets, -np.array(offsets, float), lambda predicted, true:
            -np.abs(predicted.start[:, None] - true.start))
