# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""F1, edit score, recall, delay and false alarms of segments."""
from collections.abc import Mapping, Sequence

import numpy as np

from ...utils.arguments import Share, check_arguments
from .labeled_events import LabeledEvents, VideoMetric, check_ends, meet


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
        for place, mine, theirs in events.groups():
            self.predicted[place] = len(mine)
            self.true[place] = len(theirs)
            if not len(mine) or not len(theirs):
                continue
            true = events.true.select(theirs)
            true = true.select(np.lexsort((true.end, true.start)))
            overlaps = events.predicted.select(mine).overlaps(true)
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


class Alarms(VideoMetric):
    """Recall, delay and false alarms of events, for users who react to them.

    Predicted and annotated segments of one class meet if they share more than
    a boundary, or start at the same time. A prediction that meets no annotated
    segment is a false alarm; several predictions of one action are not. An
    annotated segment that meets no prediction is missed. Otherwise, its delay
    is the start of the first prediction that it meets, minus its own start,
    which is negative if the prediction starts earlier.

    A live detector reports an event ``min_duration`` seconds after its start.
    The values are 'recall', 'false_alarms_per_hour', and the median and the
    90th percentile of the delay in seconds, 'delay_median' and 'delay_p90'.

    Args:
        events: Segments.
        durations: Length of each video in seconds. Defaults to the last end of
            the video's segments.

    Raises:
        ValueError: If a segment lacks an end, or the length of a video is
            unknown.

    Attributes:
        seconds: Length of each video in seconds, [V].
        true: Number of annotated segments, [V, K].
        found: Number of annotated segments that were not missed, [V, K].
        false: Number of false alarms, [V, K].
        delays: Delay in seconds of each segment that was not missed, [N].
        delay_videos: Index of its video, [N].
    """

    def __init__(self, events: LabeledEvents,
                 durations: Mapping[str, float] | None = None) -> None:
        check_ends(events)
        self.num_videos = len(events.videos)
        shape = self.num_videos, len(events.classes)
        if durations is None:
            self.seconds = np.zeros(shape[0])
            for each in events.predicted, events.true:
                np.maximum.at(self.seconds, each.video, each.end)
        else:
            missing = [v for v in events.videos if v not in durations]
            if missing:
                raise ValueError('durations must have all videos, and lacks '
                                 f'{", ".join(missing[:3])}')
            self.seconds = np.array(
                [float(durations[video]) for video in events.videos])
        self.true, self.found, self.false = (
            np.zeros(shape, int) for _ in range(3))
        delays, videos = [np.zeros(0)], [np.zeros(0, int)]
        for place, mine, theirs in events.groups():
            predicted = events.predicted.select(mine)
            true = events.true.select(theirs)
            meets = meet(predicted.start[:, None], predicted.end[:, None],
                         true.start, true.end)
            found = meets.any(axis=0)
            self.true[place], self.found[place] = len(true), found.sum()
            self.false[place] = (~meets.any(axis=1)).sum()
            first = np.where(meets, predicted.start[:, None], np.inf).min(
                axis=0, initial=np.inf)
            delays.append((first - true.start)[found])
            videos.append(np.full(found.sum(), place[0]))
        self.delays = np.concatenate(delays)
        self.delay_videos = np.concatenate(videos)

    def _values(self, weights: np.ndarray) -> dict[str, float]:
        found, true, false, seconds = (
            float(each.sum()) for each in self._sums(
                weights, self.found, self.true, self.false, self.seconds))
        delays = np.repeat(self.delays, weights[self.delay_videos])
        middle, late = (np.percentile(delays, [50, 90]) if len(delays)
                        else (np.nan, np.nan))
        return dict(
            recall=found / true if true else np.nan,
            false_alarms_per_hour=(3600 * false / seconds if seconds
                                   else np.nan),
            delay_median=float(middle), delay_p90=float(late))
