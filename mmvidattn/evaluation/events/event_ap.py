# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of segments and of starts, for resampled videos."""
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...utils.arguments import NotNegative, Share, check_arguments
from .labeled_events import (
    Events,
    LabeledEvents,
    VideoMetric,
    check_ends,
    check_scores,
)

THUMOS14 = .3, .4, .5, .6, .7
ACTIVITYNET = .5, .55, .6, .65, .7, .75, .8, .85, .9, .95
OFFSETS = tuple(range(1, 11))
PROTOCOLS = 'activitynet', 'thumos14'


@dataclass(frozen=True)
class Ranking:
    """Predictions of one class, highest score first, at J thresholds.

    Attributes:
        video: Index of the video of each prediction, int [N].
        score: Scores, decreasing, [N].
        hit: True if a prediction is correct, bool [J, N].
        counts: True if a prediction counts, bool [N]. Predictions at ambiguous
            annotations do not.
        positives: Number of annotated segments in each video, [V].
        interpolation: 'all' or '11 points'.
    """
    video: np.ndarray
    score: np.ndarray
    hit: np.ndarray
    counts: np.ndarray
    positives: np.ndarray
    interpolation: str = 'all'

    def curve(self, weights: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return hits, precision and recall, each [J, N].

        See :meth:`average_precision` for the argument.
        """
        weight = weights[self.video]
        hits = np.cumsum(self.hit * weight, axis=1)
        total = np.cumsum((self.hit | self.counts) * weight, axis=1)
        precision = np.divide(hits, total, out=np.zeros_like(hits, float),
                              where=total > 0)
        positives = (self.positives * weights).sum()
        recall = hits / positives if positives else np.full_like(
            precision, np.nan)
        return hits, precision, recall

    def average_precision(self, weights: np.ndarray) -> np.ndarray:
        """Return the interpolated average precision at each threshold, [J].

        Precision is replaced by the highest precision at the same or a higher
        recall. With ``interpolation='all'``, the result is the area below this
        curve; with '11 points', its mean at recall 0, 0.1, ..., 1. It is nan
        if no annotated segment counts.

        Args:
            weights: Number of times that each video counts, [V].
        """
        positives = (self.positives * weights).sum()
        if not positives:
            return np.full(len(self.hit), np.nan)
        hits, precision, _ = self.curve(weights)
        best = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
        if self.interpolation == 'all':
            gain = self.hit * weights[self.video]
            return (gain * best).sum(axis=1) / positives
        points = np.zeros((len(hits), 11))
        for row, (found, high) in enumerate(zip(hits, best)):
            for tenth in range(11):
                # In whole numbers, because 0.1 * 3 != 0.3.
                first = np.searchsorted(10 * found, tenth * positives)
                if first < len(high):
                    points[row, tenth] = high[first]
        return points.mean(axis=1)


def find_hits(events: LabeledEvents, number: int,
              match: Callable[[Events, Events], np.ndarray]) -> np.ndarray:
    """Return which predictions are correct at J thresholds, bool [J, P].

    Args:
        events: Segments.
        number: Number of thresholds J.
        match: Function that does the same for the predictions and the
            annotated segments of one class in one video. Predictions with
            higher scores come first.
    """
    hit = np.zeros((number, len(events.predicted)), bool)
    for group in events.groups():
        order = group.predicted[np.argsort(
            -events.predicted.score[group.predicted], kind='stable')]
        hit[:, order] = match(events.predicted.select(order),
                              events.true.select(group.true))
    return hit


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
        labels: Indices of the classes that have annotated segments.
        hit: True if a prediction is correct, bool [J, P].
        counts: True if a prediction counts, bool [P].
        interpolation: 'all' or '11 points'.

    Attributes:
        classes: Names of the K' classes.
        rankings: :class:`Ranking` of each class.
    """

    def __init__(self, events: LabeledEvents, labels: np.ndarray,
                 hit: np.ndarray, counts: np.ndarray,
                 interpolation: str = 'all') -> None:
        predicted, true = events.predicted, events.true
        self.classes = [events.classes[label] for label in labels]
        self.rankings = []
        for label in labels:
            chosen = np.flatnonzero(predicted.label == label)
            chosen = chosen[np.argsort(-predicted.score[chosen],
                                       kind='stable')]
            self.rankings.append(Ranking(
                predicted.video[chosen], predicted.score[chosen],
                hit[:, chosen], counts[chosen],
                np.bincount(true.video[true.label == label],
                            minlength=len(events.videos)), interpolation))
        self.num_videos, self._num_thresholds = len(events.videos), len(hit)

    def average_precision(self, weights: np.ndarray | None = None
                          ) -> np.ndarray:
        """Return the average precision of each class and threshold, [K', J].

        See :meth:`values` for the argument.
        """
        weights = self._once() if weights is None else weights
        return np.array([ranking.average_precision(weights)
                         for ranking in self.rankings]).reshape(
                             len(self.rankings), self._num_thresholds)


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

    Attributes:
        thresholds: The thresholds.
        classes: Names of the classes that have annotated segments.
        rankings: :class:`.Ranking` of each of these classes.
    """

    def __init__(self, events: LabeledEvents,
                 thresholds: Sequence[Share] = THUMOS14,
                 protocol: Literal[PROTOCOLS] = 'activitynet'
                 ) -> None:
        check_ends(events)
        check_scores(events)
        self.thresholds = tuple(thresholds)
        strict = protocol == 'thumos14'
        predicted, true = events.predicted, events.true
        least = np.array(self.thresholds)
        hit = find_hits(
            events, len(least), lambda predicted, true:
            match(true.overlaps(predicted), least, True)[1] if strict
            else match(predicted.overlaps(true), least)[0])
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

    def _values(self, weights: np.ndarray) -> dict[str, float]:
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
            events, len(self.offsets), lambda predicted, true: match(
                -np.abs(predicted.start[:, None] - true.start),
                -np.array(self.offsets, float))[0])
        super().__init__(events, np.unique(events.true.label), hit,
                         np.ones(len(events.predicted), bool))

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        return mean_by_threshold('start_mAP@{:g}s', 'start_mAP', self.offsets,
                                 self.average_precision(weights))
