# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Search for the thresholds of events on annotated videos."""
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from scipy.ndimage import uniform_filter

from ...datasets.annotations.video_segment import VideoSegment
from ...online import MIN_DURATION, OFF, ON
from ...online.event_thresholds import Thresholds, smooth
from ...online.frame_scores import FrameScores, check_scores
from ...utils.arguments import NotNegative, check_arguments
from .event_counts import Alarms, SegmentF1
from .labeled_events import (
    Events,
    check_ends,
    detect_events,
    label_events,
    meet,
    overlap,
)

F1_OVERLAPS = {'f1@10': .1, 'f1@25': .25, 'f1@50': .5}
# Candidates in seconds.
SMOOTHING = 0., .25, .5, 1., 2., 4.
MIN_DURATIONS = 0., .25, MIN_DURATION, 1., 2., 4.
OFF_RATIOS = 1., .9, .8, .7, OFF / ON, .5, .4, .3, .2, .1
# Candidates of `on`: these quantiles of the scores inside of actions, and of
# the scores outside of actions.
QUANTILES = np.linspace(.02, .98, 21), (.9, .95, .98, .99, .995, .999)
# Smallest and largest `on`.
BOUNDS = .05, .95
# Pull of the usual rule, in events for a distance of 1, and weight of the
# neighboring candidates; see tune_thresholds.
STRENGTH = 1.
NEIGHBORS = .5
# Seconds between videos on the common time axis.
GAP = 10.


@check_arguments
def tune_thresholds(
        videos: Mapping[str, Any],
        segments: Sequence[VideoSegment],
        classes: Sequence[str],
        ignore: Any = (0, ),
        objective: Literal['f1@10', 'f1@25', 'f1@50', 'recall'] = 'f1@50',
        false_alarms_per_hour: NotNegative | None = None,
        smoothing: Sequence[NotNegative] = SMOOTHING,
        min_durations: Sequence[NotNegative] = MIN_DURATIONS) -> Thresholds:
    """Choose the thresholds of each class that give the best events.

    The search tries all combinations of candidates of ``on``, ``off``,
    ``smoothing`` and ``min_duration`` for each class. Candidates of ``on``
    divide the range of the scores evenly, or are quantiles of the scores. The
    search computes the same events as :class:`EventDetector`, without running
    it.

    A few events say little about the best thresholds. The search therefore
    maximizes ``value - STRENGTH * distance / number of events``. The value is
    the mean of the objective and of its mean over the neighboring candidates,
    so that a slightly different score loses no event. The distance from the
    usual rule is the sum of the squared changes of logit(on) and of the
    logarithms of off / on, of the smoothing and of the minimum duration (both
    plus 0.5 s). The usual rule has the default thresholds without smoothing,
    and half of the shortest segment of all classes as minimum duration.
    ``on`` stays within 0.05 and 0.95.

    A class without annotated segments, or without a correct event for any
    candidate, keeps the defaults of :class:`EventDetector`.

    Args:
        videos: :class:`~mmvidattn.online.frame_scores.FrameScores` of each
            video by name, from videos that the model was not trained on.
        segments: Annotated segments of these videos. Other segments are left
            out.
        classes: Names of the K classes.
        ignore: Indices of classes that are not actions. Defaults to (0, ).
        objective: 'f1@10', 'f1@25' or 'f1@50' (:class:`.SegmentF1`), or
            'recall' (:class:`.Alarms`) with at most ``false_alarms_per_hour``.
            Defaults to 'f1@50'.
        false_alarms_per_hour: Largest number for each class, for 'recall'.
        smoothing: Candidates in seconds. Defaults to 0, 0.25, ..., 4.
        min_durations: Candidates in seconds. Defaults to 0, 0.25, ..., 4.

    Raises:
        ValueError: If scores and annotations do not fit together, or only one
            of 'recall' and ``false_alarms_per_hour`` is given.
    """
    if (objective == 'recall') != (false_alarms_per_hour is not None):
        raise ValueError("objective='recall' and false_alarms_per_hour need "
                         f'each other, got {objective!r} and '
                         f'{false_alarms_per_hour}')
    videos = {name: FrameScores(*each) for name, each in videos.items()}
    check_scores(videos, len(classes))
    truth = _true_actions(videos, segments, classes, ignore)
    axis = _TimeAxis(videos)
    averages = _averages(videos, smoothing)
    rules, values, numbers = {}, {}, {}
    for k, name in enumerate(classes):
        if k in ignore or name in rules:
            continue
        true = [one for one in truth if one.labels['action'] == name]
        rules[name] = dict(on=ON, off=OFF, smoothing=0.,
                           min_duration=MIN_DURATION)
        values[name], numbers[name] = math.nan, len(true)
        if true:
            rule, values[name] = _tune_class(
                averages[..., k], axis, axis.sort(true), objective,
                false_alarms_per_hour, smoothing, min_durations,
                min(one.end - one.start for one in truth) / 2)
            rules[name] = rule or rules[name]
    before, after = (
        _evaluate(detect_events(videos, classes, ignore, **options), truth,
                  videos, objective)
        for options in ({}, dict(thresholds=rules)))
    about = dict(videos=len(videos), segments=len(truth), events=numbers,
                 hours=round(axis.seconds / 3600, 4),
                 value_of_defaults=None if math.isnan(before) else before)
    if objective == 'recall':
        about['false_alarms_per_hour'] = false_alarms_per_hour
    return Thresholds(rules, objective, after, values, about)


def _true_actions(videos: Mapping[str, FrameScores],
                  segments: Sequence[VideoSegment], classes: Sequence[str],
                  ignore: Container[int]) -> list[VideoSegment]:
    """Return the annotated actions of the videos."""
    ignored = {name for k, name in enumerate(classes) if k in ignore}
    truth = [one._replace(labels=dict(action=str(one.labels.get('action'))))
             for one in segments if one.video in videos]
    truth = [one for one in truth if one.labels['action'] not in ignored]
    unknown = sorted({one.labels['action'] for one in truth} - set(classes))
    if unknown:
        raise ValueError(f'segments must have the classes of the model, '
                         f'{", ".join(classes)}, got {", ".join(unknown)}')
    if not truth:
        raise ValueError(
            f'segments must have actions in at least one of the {len(videos)} '
            f'videos with scores, such as {next(iter(videos), "none")}, but '
            f'the first segment is of {segments[0].video}' if segments else
            'there are no segments')
    check_ends(label_events([], truth))
    return truth


# Video, start and end of the events of one ``on``, ``off`` and ``smoothing``.
_Candidate = tuple[np.ndarray, np.ndarray, np.ndarray]


class _TimeAxis:
    """Videos one after the other, as steps and as seconds.

    Args:
        videos: Scores by name.

    Attributes:
        names: Names of the V videos.
        first: First step of each video on the axis, and the end, [V + 1].
        rate: Steps per second of each video, [V].
        seconds: Length of all videos.
    """

    def __init__(self, videos: Mapping[str, FrameScores]) -> None:
        lengths = [len(each.scores) for each in videos.values()]
        self.names = list(videos)
        self.first = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        self.rate = np.array([each.rate for each in videos.values()], float)
        self.seconds = float((lengths / self.rate).sum())
        self.video = np.repeat(np.arange(len(videos)), lengths)

    def sort(self, segments: Sequence[VideoSegment]) -> Events:
        """Return segments as arrays, sorted by video, start and end."""
        events = label_events([], segments, self.names).true
        return events.select(np.lexsort(
            (events.end, events.start, events.video)))

    def inside(self, true: Events) -> np.ndarray:
        """Return the steps that the segments cover, bool [T]."""
        change = np.zeros(self.first[-1] + 1, int)
        for at, step in (1, true.start), (-1, true.end):
            steps = np.clip(np.round(step * self.rate[true.video]).astype(int),
                            0, np.diff(self.first)[true.video])
            np.add.at(change, self.first[true.video] + steps, at)
        return np.cumsum(change[:-1]) > 0

    def events(self, scores: np.ndarray, pairs: Sequence[tuple[float, float]]
               ) -> Iterator[_Candidate]:
        """Yield the events of scores [T] for each pair ``on``, ``off``.

        As in :class:`EventDetector`, an event starts at the first score that
        reaches ``on``, and ends before the first that is below ``off``.
        """
        reaches = {on: np.flatnonzero(scores >= on) for on, _ in pairs}
        runs = {off: self._runs(scores >= off) for _, off in pairs}
        for on, off in pairs:
            first, stop = runs[off]
            steps = np.append(reaches[on], len(scores))
            start = steps[np.searchsorted(steps, first)]
            kept = start < stop
            start, stop = start[kept], stop[kept]
            video = self.video[start]
            begin, rate = self.first[video], self.rate[video]
            yield video, (start - begin) / rate, (stop - begin) / rate

    def _runs(self, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return first steps of runs, and the steps after their last ones."""
        edge = np.zeros(len(mask) + 1, bool)
        edge[self.first] = True
        before = np.append(False, mask)
        after = np.append(mask, False)
        return (np.flatnonzero(after & (~before | edge)),
                np.flatnonzero(before & (~after | edge)))


def _averages(videos: Mapping[str, FrameScores],
              smoothing: Sequence[float]) -> np.ndarray:
    """Smooth the scores of all videos like :class:`EventDetector`.

    Returns:
        Averages for each time constant, [S, T, K].
    """
    seconds = np.array(smoothing)[:, None]
    parts = []
    for rate, scores in videos.values():
        smoothed = np.repeat(scores[None], len(seconds), axis=0)
        for t in range(1, len(scores)):
            smoothed[:, t] = smooth(smoothed[:, t - 1], scores[t], seconds,
                                    (t + 1) / rate - t / rate)
        parts.append(smoothed)
    return np.concatenate(parts, axis=1)


def _tune_class(averages: np.ndarray, axis: _TimeAxis, true: Events,
                objective: str, limit: float | None,
                smoothing: Sequence[float], min_durations: Sequence[float],
                usual: float) -> tuple[dict[str, float] | None, float]:
    """Return the best rules of a class, and their value.

    The averages are [S, T], one for each time constant in ``smoothing``, and
    ``true`` has the sorted segments. ``limit`` is the largest number of false
    alarms per hour, and ``usual`` the usual minimum duration.
    """
    matches = _Matches(axis, true, F1_OVERLAPS.get(objective))
    inside = axis.inside(true)
    best, rules, reached = -math.inf, None, 0.
    for seconds, scores in zip(smoothing, averages):
        starts = _candidates(scores, inside)
        pairs = [(on, _rounded(on * ratio)) for on in starts
                 for ratio in OFF_RATIOS]
        typed = [tuple(np.array(pair).astype(scores.dtype)) for pair in pairs]
        value = np.zeros((len(pairs), len(min_durations)))
        false = np.zeros_like(value)
        for i, events in enumerate(axis.events(scores, typed)):
            value[i], false[i] = matches.values(events, min_durations)
        if limit is not None:
            value[3600 * false > limit * axis.seconds] = -1.
        shape = len(starts), len(OFF_RATIOS), len(min_durations)
        near = uniform_filter(value.clip(0).reshape(shape), 3,
                              mode='nearest').reshape(value.shape)
        goal = (1 - NEIGHBORS) * value + NEIGHBORS * near - (
            STRENGTH / len(true) * _distances(pairs, seconds, min_durations,
                                              usual))
        goal[value < 0] = -math.inf
        place = pair, duration = np.unravel_index(goal.argmax(), goal.shape)
        if value[place] > 0 and goal[place] > best:
            best, reached = goal[place], float(value[place])
            on, off = pairs[pair]
            rules = dict(on=on, off=off, smoothing=float(seconds),
                         min_duration=float(min_durations[duration]))
    return rules, reached


def _distances(pairs: Sequence[tuple[float, float]], smoothing: float,
               min_durations: Sequence[float], usual: float) -> np.ndarray:
    """Return the distance of rules from the usual rule, [P, M]."""
    on, off = np.array(pairs).T
    return ((np.log(on / (1 - on))**2 + np.log(off / on / (OFF / ON))**2
             + np.log((smoothing + .5) / .5)**2)[:, None]
            + np.log((np.array(min_durations) + .5) / (usual + .5))**2)


def _candidates(scores: np.ndarray, inside: np.ndarray) -> list[float]:
    """Return increasing candidates of ``on``."""
    thresholds = [[ON], np.linspace(scores.min(), scores.max(), 12)]
    thresholds += [np.quantile(scores[mask], quantiles) for mask, quantiles
                   in zip((inside, ~inside), QUANTILES) if mask.any()]
    return sorted({_rounded(x) for x in np.concatenate(thresholds).clip(
        *BOUNDS).tolist()})


def _rounded(value: float) -> float:
    return float(f'{value:.4g}')


class _Matches:
    """Numbers of correct and false events of a class.

    Args:
        axis: Time axis.
        true: Annotated segments, sorted.
        least: Overlap of correct events; None for recall.
    """

    def __init__(self, axis: _TimeAxis, true: Events,
                 least: float | None) -> None:
        self.true, self.least = true, least
        # Places of the videos in seconds on the common axis. Only used to find
        # segments that may overlap.
        lengths = np.diff(axis.first) / axis.rate
        np.maximum.at(lengths, true.video, true.end)
        self._place = np.concatenate([[0], np.cumsum(lengths + GAP)[:-1]])
        self._starts = true.start + self._place[true.video]
        self._ends = np.maximum.accumulate(true.end + self._place[true.video])

    def values(self, events: _Candidate, min_durations: Sequence[float]
               ) -> tuple[np.ndarray, np.ndarray]:
        """Return F1 or recall, and the number of false events, [M] each."""
        _, starts, ends = events
        kept = ends - starts >= np.array(min_durations)[:, None] - 1e-6
        event, segment = self._pairs(events)
        start, end = starts[event], ends[event]
        true_start, true_end = self.true.start[segment], self.true.end[segment]
        if self.least is None:
            meets = meet(start, end, true_start, true_end)
            event, segment = event[meets], segment[meets]
            is_met = np.zeros(len(starts), bool)
            is_met[event] = True
            false = (kept & ~is_met).sum(axis=1)
            correct = self._number_found(kept, event, segment)
            return correct / len(self.true), false
        overlaps = overlap(start, end, true_start, true_end)
        # The first segment with the highest overlap of each event.
        order = np.lexsort((segment, -overlaps, event))
        event, segment = event[order], segment[order]
        first = np.diff(event, prepend=-1) > 0
        first &= overlaps[order] >= self.least
        correct = self._number_found(kept, event[first], segment[first])
        number = kept.sum(axis=1)
        return 2 * correct / (number + len(self.true)), number - correct

    def _number_found(self, kept: np.ndarray, event: np.ndarray,
                      segment: np.ndarray) -> np.ndarray:
        """Return the number of segments with a kept event, [M]."""
        detected = np.zeros((len(kept), len(self.true)), bool)
        row, pair = np.nonzero(kept[:, event])
        detected[row, segment[pair]] = True
        return detected.sum(axis=1)

    def _pairs(self, events: _Candidate) -> tuple[np.ndarray, np.ndarray]:
        """Return indices of events and of segments that may overlap."""
        video, start, end = events
        place = self._place[video]
        low = np.searchsorted(self._ends, start + place - GAP / 4)
        high = np.searchsorted(self._starts, end + place + GAP / 4)
        number = np.maximum(high - low, 0)
        event = np.repeat(np.arange(len(low)), number)
        within = np.arange(number.sum()) - np.repeat(
            np.cumsum(number) - number, number)
        return event, low[event] + within


def _evaluate(predictions: Sequence[VideoSegment],
              truth: Sequence[VideoSegment], videos: Mapping[str, FrameScores],
              objective: str) -> float:
    """Return the objective of all classes together."""
    events = label_events(predictions, truth, list(videos))
    if objective == 'recall':
        return Alarms(events).values()['recall']
    least = F1_OVERLAPS[objective]
    return SegmentF1(events, (least, )).values()[f'F1@{100 * least:g}']
