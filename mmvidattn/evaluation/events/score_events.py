# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""All metrics of events at once, with confidence intervals."""
from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from ...datasets.annotations.video_segment import VideoSegment, steps_of
from ...online.frame_scores import FrameScores
from ...utils.arguments import Natural, check_arguments
from .calibration import Calibration
from .event_ap import (
    ACTIVITYNET,
    AMBIGUOUS,
    PROTOCOLS,
    THUMOS14,
    SegmentAP,
    StartAP,
)
from .event_counts import Alarms, EditScore, SegmentF1
from .labeled_events import check_ends, label_events


class Interval(NamedTuple):
    """Value with a confidence interval; nan where it is undefined."""
    value: float
    low: float
    high: float


@check_arguments
def bootstrap(values: Callable[[np.ndarray], dict[str, float]],
              num_videos: Natural, draws: Natural = 1000
              ) -> dict[str, Interval]:
    """Compute 95 % intervals by the percentile bootstrap over videos.

    Each draw takes ``num_videos`` videos with replacement, because frames and
    events of one video depend on each other. Draws in which a value is
    undefined are left out.

    Args:
        values: Function from the number of times that each video counts,
            int [V], to values by name.
        num_videos: Number of videos V. With fewer than 2, intervals are nan.
        draws: Number of draws. 0 computes only the values.
    """
    rng = np.random.default_rng(0)
    drawn = [values(rng.multinomial(
        num_videos, np.full(num_videos, 1 / num_videos)))
        for _ in range(draws if num_videos > 1 else 0)]
    intervals = {}
    for name, value in values(np.ones(num_videos, int)).items():
        each = np.array([one[name] for one in drawn])
        known = each[~np.isnan(each)]
        low, high = (np.quantile(known, [.025, .975]) if len(known)
                     else (np.nan, np.nan))
        intervals[name] = Interval(float(value), float(low), float(high))
    return intervals


def score_events(predictions: Sequence[VideoSegment],
                 truth: Sequence[VideoSegment],
                 durations: Mapping[str, float] | None = None,
                 draws: int = 1000, **options: Any) -> dict[str, Interval]:
    """Return all metrics that the segments allow, by name.

    Args:
        predictions: See :class:`EventScores`, also for other arguments.
        truth: Annotated segments.
        durations: Length of each video in seconds.
        draws: Number of draws of :func:`.bootstrap`. Defaults to 1000.

    Returns:
        Values with their 95 % intervals over videos, such as 'mAP@0.5',
        'F1@50', 'edit', 'start_mAP@1s', 'delay_median' and 'ECE'.
    """
    scores = EventScores(predictions, truth, durations, **options)
    return bootstrap(scores.values, len(scores.events.videos), draws)


@check_arguments
class EventScores:
    """Metrics of predicted segments.

    Average precision needs the score of each prediction, and metrics of
    segments need all ends. Otherwise, these metrics are left out.

    Args:
        predictions: Predicted segments.
        truth: Annotated segments.
        durations: Length of each video in seconds, for false alarms. These
            videos are evaluated, also those without segments. Defaults to
            the videos of the segments, each up to its last end.
        protocol: ``protocol`` of :class:`.SegmentAP`. Defaults to
            'activitynet'. With 'thumos14', no metric counts the class
            'Ambiguous', nor predictions that only overlap its segments.
        frame_scores: Scores of the steps of the videos, for calibration.
            Defaults to None.
        classes: Names of the classes of the scores.
        ignore: Indices of classes that are not actions. Defaults to (0, ).

    Attributes:
        events: Segments as arrays.
        metrics: Metrics by the name of their class.
        left_out: Reason for each metric that was left out.
    """

    def __init__(self, predictions: Sequence[VideoSegment],
                 truth: Sequence[VideoSegment],
                 durations: Mapping[str, float] | None = None, *,
                 protocol: Literal[PROTOCOLS] = 'activitynet',
                 frame_scores: Mapping[str, FrameScores] | None = None,
                 classes: Sequence[str] = (),
                 ignore: Container[int] = (0, )) -> None:
        videos = None if durations is None else sorted(durations)
        every = self.events = label_events(predictions, truth, videos)
        if protocol == 'thumos14':
            self.events = label_events(
                *_without_ambiguous(predictions, truth), every.videos)
        self.metrics: dict[str, Any] = {}
        self.left_out: dict[str, str] = {}
        builders = dict(
            SegmentAP=lambda: SegmentAP(every, THUMOS14, protocol),
            AveragedAP=lambda: SegmentAP(every, ACTIVITYNET, protocol),
            SegmentF1=lambda: SegmentF1(self.events),
            EditScore=lambda: EditScore(self.events),
            StartAP=lambda: StartAP(self.events),
            Alarms=lambda: Alarms(self.events, durations))
        if frame_scores is not None:
            builders['Calibration'] = lambda: _calibration(
                every.videos, truth, frame_scores, classes, ignore)
        for name, build in builders.items():
            try:
                self.metrics[name] = build()
            except ValueError as error:
                self.left_out[name] = str(error)

    def values(self, weights: np.ndarray | None = None) -> dict[str, float]:
        """Return all values by name; see :meth:`.VideoMetric.values`."""
        merged: dict[str, float] = {}
        for metric in self.metrics.values():
            merged |= metric.values(weights)
        return merged


def _without_ambiguous(predictions: Sequence[VideoSegment],
                       truth: Sequence[VideoSegment]
                       ) -> tuple[list[VideoSegment], list[VideoSegment]]:
    """Drop THUMOS'14's ambiguous segments, and predictions only in them."""
    by_video: dict[str, list[VideoSegment]] = defaultdict(list)
    for one in truth:
        by_video[one.video].append(one)
    kept = []
    for one in predictions:
        met = {other.labels.get('action') for other in by_video[one.video]
               if one.start < other.end and other.start < one.end}
        label = one.labels.get('action')
        if label in met - {AMBIGUOUS} or not {AMBIGUOUS} & {label, *met}:
            kept.append(one)
    return kept, [one for one in truth
                  if one.labels.get('action') != AMBIGUOUS]


def _calibration(videos: Sequence[str], truth: Sequence[VideoSegment],
                 frame_scores: Mapping[str, FrameScores],
                 classes: Sequence[str],
                 ignore: Container[int]) -> Calibration:
    """Return the calibration of the actions; videos need no scores.

    A segment covers the steps that it overlaps.
    """
    check_ends(label_events([], truth, videos))
    actions = [k for k in range(len(classes)) if k not in ignore]
    scores = {video: frame_scores[video].scores[:, actions]
              if video in frame_scores else np.zeros((0, len(actions)))
              for video in videos}
    targets = {video: np.zeros_like(each) for video, each in scores.items()}
    columns = {classes[k]: i for i, k in enumerate(actions)}
    for one in truth:
        column = columns.get(str(one.labels.get('action')))
        if one.video in frame_scores and one.video in targets and (
                column is not None):
            first, stop = steps_of(one.start, one.end,
                                   frame_scores[one.video].rate)
            targets[one.video][first:stop, column] = 1
    return Calibration([*scores.values()], [*targets.values()])
