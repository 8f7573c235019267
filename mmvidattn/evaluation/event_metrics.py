# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Metrics of the events that online detectors find in the test loop."""
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from mmaction.registry import METRICS
from mmengine.evaluator import BaseMetric

from ..datasets.annotations.video_segment import VideoSegment
from ..datasets.feature_streams import find_runs
from ..online.event_thresholds import read_thresholds
from ..online.frame_scores import FrameScores
from ..utils.arguments import Natural, Positive, Share, check_arguments
from .events import (
    OFFSETS,
    THUMOS14,
    Alarms,
    Calibration,
    EditScore,
    LabeledEvents,
    SegmentAP,
    SegmentF1,
    StartAP,
    detect_events,
    label_events,
)
from .events.labeled_events import VideoMetric
from .per_frame_map import gather_steps, read_scores


@check_arguments
class EventMetric(BaseMetric):
    """Base class of metrics of events.

    As in live detection, an
    :class:`mmvidattn.online.event_detector.EventDetector` finds the events in
    the scores ``pred_action`` of a video. Consecutive steps of a class in
    ``gt_action`` are an annotated event. :class:`PerFrameMAP` reads the same
    samples.

    Also as in live detection, the class that training ignores has score 0, and
    the scores of the other classes are divided by their sum.

    Args:
        rate: Steps per second, ``feature_rate`` or ``frame_rate`` of the
            dataset.
        background_index: Class that is not an action; None if there is none.
            Defaults to 0.
        ignore_index: Class that training ignores, such as 21, "Ambiguous" of
            THUMOS'14. Defaults to None.
        events: Arguments ``on``, ``off``, ``min_duration`` and ``thresholds``
            of :class:`EventDetector`. Defaults to its defaults.
        thresholds: File of ``mmvidattn tune-thresholds``. Defaults to None.
        **kwargs: Arguments of mmengine's ``BaseMetric``.
    """
    default_prefix = 'events'
    # Functions of the events and the length of each video in seconds.
    metrics: Sequence[Callable[[LabeledEvents, dict[str, float]],
                               VideoMetric]] = ()

    def __init__(self, rate: Positive, background_index: Natural | None = 0,
                 ignore_index: Natural | None = None,
                 events: Mapping[str, Any] | None = None,
                 thresholds: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate
        self.ignore_index = ignore_index
        self.ignore = {background_index, ignore_index} - {None}
        self.events = dict(events or {})
        if thresholds is not None:
            self.events['thresholds'] = read_thresholds(thresholds).classes

    def process(self, data_batch: Any, data_samples: Sequence[dict]) -> None:
        """Store the scores and targets of each window that counts."""
        for sample in data_samples:
            self.results.append(dict(
                video=sample['video_name'], length=sample['video_length'],
                parts=read_scores(sample)[:1]))

    def compute_metrics(self, results: list[dict]) -> dict[str, float]:
        names = list(dict.fromkeys(result['video'] for result in results))
        gathered = dict(zip(names, gather_steps(results, 0)))
        number = gathered[names[0]][0].shape[1]
        classes = list((self.dataset_meta or {}).get('classes') or (
            f'class {k}' for k in range(number)))
        return self._evaluate(
            {name: FrameScores(self.rate, self._probabilities(each))
             for name, (each, _) in gathered.items()},
            {name: each == 1 for name, (_, each) in gathered.items()}, classes)

    def _evaluate(self, scores: dict[str, FrameScores],
                  targets: dict[str, np.ndarray],
                  classes: Sequence[str]) -> dict[str, float]:
        # The targets are the steps that show each class, bool [T, K].
        found = detect_events(scores, classes, self.ignore, **self.events)
        truth = [
            VideoSegment(f'{name} {k} {start}', name, start / each.rate,
                         stop / each.rate, dict(action=classes[k]),
                         f'gt_action of {name}')
            for name, each in scores.items() for k in range(len(classes))
            if k not in self.ignore
            for start, stop in find_runs(targets[name][:, k])]
        durations = {name: len(each.scores) / each.rate
                     for name, each in scores.items()}
        values: dict[str, float] = {}
        for metric in self.metrics:
            values |= metric(label_events(found, truth, list(scores)),
                             durations).values()
        return values

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if scores.size and not 0 <= scores.min() <= scores.max() <= 1:
            raise ValueError('pred_action must have probabilities (score='
                             "'prob' of the head), got scores from "
                             f'{scores.min():g} to {scores.max():g}')
        if self.ignore_index is None:
            return scores
        scores = scores.copy()
        scores[:, self.ignore_index] = 0
        total = scores.sum(axis=1, keepdims=True)
        return np.divide(scores, total, out=np.zeros_like(scores),
                         where=total > 0)


@METRICS.register_module()
@check_arguments
class EventAP(EventMetric):
    """Mean average precision of events (:class:`.events.SegmentAP`).

    The score of an event is its highest score.

    Args:
        tious: Thresholds of overlap. Defaults to 0.3, 0.4, ..., 0.7.
        protocol: ``'activitynet'`` or ``'thumos14'``. Defaults to
            ``'activitynet'``.
        **kwargs: Arguments of :class:`EventMetric`.
    """

    def __init__(self, tious: Sequence[Share] = THUMOS14,
                 protocol: Literal['activitynet', 'thumos14'] = 'activitynet',
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metrics = [lambda events, _: SegmentAP(events, tious, protocol)]


@METRICS.register_module()
@check_arguments
class EventF1(EventMetric):
    """F1 and edit score of events (:class:`.events.SegmentF1`).

    Args:
        tious: Thresholds of overlap. Defaults to 0.1, 0.25 and 0.5.
        **kwargs: Arguments of :class:`EventMetric`.
    """

    def __init__(self, tious: Sequence[Share] = (.1, .25, .5),
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metrics = [lambda events, _: SegmentF1(events, tious),
                        lambda events, _: EditScore(events)]


@METRICS.register_module()
@check_arguments
class EventStartAP(EventMetric):
    """Average precision of the starts of events (:class:`.events.StartAP`).

    Args:
        offsets: Largest offsets in seconds. Defaults to 1, 2, ..., 10.
        **kwargs: Arguments of :class:`EventMetric`.
    """

    def __init__(self, offsets: Sequence[Positive] = OFFSETS,
                 **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.metrics = [lambda events, _: StartAP(events, offsets)]


@METRICS.register_module()
class EventAlarms(EventMetric):
    """Recall, false alarms and delay of events (:class:`.events.Alarms`).

    See :class:`EventMetric` for the arguments.
    """
    metrics = [Alarms]


@METRICS.register_module()
class FrameCalibration(EventMetric):
    """Calibration of the scores of steps (:class:`.events.Calibration`).

    See :class:`EventMetric` for the arguments; ``events`` and ``thresholds``
    have no effect.
    """
    default_prefix = 'online'

    def _evaluate(self, scores: dict[str, FrameScores],
                  targets: dict[str, np.ndarray],
                  classes: Sequence[str]) -> dict[str, float]:
        actions = [k for k in range(len(classes)) if k not in self.ignore]
        return Calibration(
            [each.scores[:, actions] for each in scores.values()],
            [targets[name][:, actions] for name in scores]).values()
