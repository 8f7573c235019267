# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""F1 and edit score of segments."""
from collections.abc import Sequence

import numpy as np

from ...utils.arguments import Share, check_arguments
from .labeled_events import LabeledEvents, VideoMetric, check_ends


@check_arguments
class SegmentF1(VideoMetric):
    """F1 of segments at thresholds of overlap, such as F1@50.

    The protocol is from `MS-TCN <https://arxiv.org/abs/1903.01945>`_. Each
    predicted segment belongs to the annotated segment of its class with the
    highest overlap (tIoU). If the overlap reaches the threshold, the first
    prediction that belongs to an annotated segment is correct. All other
    predictions are false. Numbers of all videos and classes are added before
    F1 is computed. Scores of predictions do not matter.

    Differs from the published code: values are in [0, 1] instead of percent;
    the last segment of a video includes the last frame; segments may overlap,
    and are ordered by start, then by end; a video may lack segments;
    segments without length have overlap 0.

    Args:
        events: Segments.
        thresholds: The J thresholds. Defaults to 0.1, 0.25 and 0.5.

    Raises:
        ValueError: If a segment lacks an end.

    Attributes:
        correct: Number of correct predictions, [V, K, J].
        predicted: Number of predictions, [V, K].
        true: Number of annotated segments, [V, K].
    """

    def __init__(self, events: LabeledEvents,
                 thresholds: Sequence[Share] = (.1, .25, .5)) -> None:
        check_ends(events)
        self.thresholds = tuple(thresholds)
        self.classes = events.classes
        self.num_videos = len(events.videos)
        shape = self.num_videos, len(events.classes)
        self.correct = np.zeros((*shape, len(self.thresholds)), int)
        self.predicted = np.zeros(shape, int)
        self.true = np.zeros(shape, int)
        for group in events.groups():
            place = group.video, group.label
            self.predicted[place] = len(group.predicted)
            self.true[place] = len(group.true)
            if not len(group.predicted) or not len(group.true):
                continue
            true = events.true.select(group.true)
            true = true.select(np.lexsort((true.end, true.start)))
            predicted = events.predicted.select(group.predicted)
            overlaps = predicted.overlaps(true)
            best = overlaps.argmax(axis=1)
            reached = overlaps.max(axis=1)
            self.correct[place] = [
                len(np.unique(best[reached >= least]))
                for least in self.thresholds]

    def by_class(self) -> np.ndarray:
        """Return F1 of each class and threshold, [K, J]; nan if undefined."""
        return _f1(*self._counts(self._once()))

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        scores = _f1(*(each.sum(axis=0) for each in self._counts(weights)))
        return {f'F1@{100 * least:g}': float(value)
                for least, value in zip(self.thresholds, scores)}

    def _counts(self, weights: np.ndarray) -> list[np.ndarray]:
        return self._sums(weights, self.correct, self.predicted, self.true)


def _f1(correct: np.ndarray, predicted: np.ndarray,
        true: np.ndarray) -> np.ndarray:
    number = (predicted + true)[..., None]
    return np.divide(2 * correct, number, out=np.full(correct.shape, np.nan),
                     where=number > 0)


class EditScore(VideoMetric):
    """Similarity of the order of predicted and annotated segments.

    The edit score of `MS-TCN <https://arxiv.org/abs/1903.01945>`_ is 1 - D / N
    for each video: D is the Levenshtein distance between the classes of both
    lists of segments, N the length of the longer list. The score is the mean
    over the videos. Times do not matter except for the order.

    Differs from the published code: values are in [0, 1] instead of percent; a
    video without predicted and annotated segments has score 1 (published:
    error); segments may overlap, and are ordered by start, end and class.

    Args:
        events: Segments.

    Attributes:
        scores: Score of each video, [V].
    """

    def __init__(self, events: LabeledEvents) -> None:
        self.num_videos = len(events.videos)
        self.scores = np.ones(self.num_videos)
        for video in range(self.num_videos):
            words = []
            for each in events.predicted, events.true:
                each = each.select(each.video == video)
                words.append(each.label[np.lexsort(
                    (each.label, each.end, each.start))])
            longest = max(map(len, words))
            if longest:
                self.scores[video] = 1 - edit_distance(*words) / longest

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        if not len(self.scores):
            return dict(edit=float('nan'))
        return dict(edit=float(np.average(self.scores, weights=weights)))


def edit_distance(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the Levenshtein distance of two sequences."""
    row = np.arange(len(second) + 1)
    for i, word in enumerate(first, 1):
        # Distance without an insertion last, then with insertions.
        new = np.minimum(row[1:] + 1, row[:-1] + (np.array(second) != word))
        new = np.concatenate([[i], new]) - np.arange(len(row))
        row = np.minimum.accumulate(new) + np.arange(len(row))
    return int(row[-1])
