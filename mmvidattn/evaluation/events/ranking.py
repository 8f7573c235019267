# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Average precision of ranked predictions, for resampled videos."""
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .labeled_events import Events, LabeledEvents


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
            weights: Number of times that each video counts, [V]. A video that
                counts twice equals two videos with the same segments.
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


def match_in_order(closeness: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Let each prediction, in order, take the closest free segment.

    Args:
        closeness: Closeness of each prediction to each segment, [P, G].
        least: Least closeness at J thresholds, [J].

    Returns:
        Predictions that took a segment, bool [J, P].
    """
    hit = np.zeros((len(least), len(closeness)), bool)
    if not closeness.size:
        return hit
    free = np.ones((len(least), closeness.shape[1]), bool)
    rows = np.arange(len(least))
    for i in np.flatnonzero(closeness.max(axis=1) >= least.min()):
        allowed = np.where(free & (closeness[i] >= least[:, None]),
                           closeness[i], -np.inf)
        best = allowed.argmax(axis=1)
        hit[:, i] = np.isfinite(allowed[rows, best])
        free[rows[hit[:, i]], best[hit[:, i]]] = False
    return hit


class ClassRankings:
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
        self._num_videos, self._num_thresholds = len(events.videos), len(hit)

    def average_precision(self, weights: np.ndarray | None = None
                          ) -> np.ndarray:
        """Return the average precision of each class and threshold, [K', J].

        Args:
            weights: Number of times that each video counts, [V]. Defaults to
                once.
        """
        if weights is None:
            weights = np.ones(self._num_videos, int)
        return np.array([ranking.average_precision(weights)
                         for ranking in self.rankings]).reshape(
                             len(self.rankings), self._num_thresholds)
