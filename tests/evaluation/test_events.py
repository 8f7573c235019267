# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math
import random
import statistics

import event_twins as twins
import numpy as np
import pytest
from event_twins import drawn_case, segment

from mmvidattn.evaluation.events import (
    ACTIVITYNET,
    THUMOS14,
    Alarms,
    Calibration,
    EditScore,
    SegmentAP,
    SegmentF1,
    StartAP,
    bootstrap,
    label_events,
)

CASES = 50


def close(found, wanted):
    return (math.isnan(found) and math.isnan(wanted)
            or abs(found - wanted) <= 1e-9)


def mean(values):
    return statistics.fmean(values) if values else math.nan


# For each metric: the metric and the values of the twin for a drawn case.
def compare_ap(twin, thresholds, predictions, truth):
    expected = [mean(twin(predictions, truth, x).values()) for x in thresholds]
    return [*expected, mean(expected)]


def compare_activitynet(events, predictions, truth, videos):
    thresholds = THUMOS14 if len(truth) % 2 else ACTIVITYNET
    return SegmentAP(events, thresholds), compare_ap(
        twins.activitynet_ap, thresholds, predictions, truth)


def compare_thumos14(events, predictions, truth, videos):
    # Class d is never predicted.
    truth = [one._replace(labels=dict(action='Ambiguous'))
             if one.labels['action'] == 'd' else one for one in truth]
    events = label_events(predictions, truth, videos)
    return SegmentAP(events, THUMOS14, 'thumos14'), compare_ap(
        twins.thumos14_ap, THUMOS14, predictions, truth)


def compare_starts(events, predictions, truth, videos):
    return StartAP(events), compare_ap(
        twins.start_ap, range(1, 11), predictions, truth)


def compare_f1(events, *case):
    return SegmentF1(events), [twins.f1(*case, x) for x in (.1, .25, .5)]


def compare_edit(events, *case):
    return EditScore(events), [twins.edit(*case)]


def compare_alarms(events, predictions, truth, videos):
    durations = {video: 20. + i for i, video in enumerate(videos)}
    return Alarms(events, durations), twins.alarms(predictions, truth,
                                                   durations)


def compare_calibration(events, predictions, truth, videos):
    rng = random.Random(repr((predictions, truth, videos)))
    bins, number = rng.randint(1, 6), rng.randint(1, 3)
    scores, targets = [], []
    for _ in range(rng.randint(1, 3)):
        steps = rng.randint(1, 6)
        scores.append([[rng.choice([0, .25, .5, .75, 1, rng.random()])
                        for _ in range(number)] for _ in range(steps)])
        targets.append([[rng.randint(0, 1) for _ in range(number)]
                        for _ in range(steps)])
    return Calibration(
        [np.array(x) for x in scores], [np.array(x) for x in targets],
        bins), twins.calibration(scores, targets, bins)


@pytest.mark.parametrize('compare', [
    compare_activitynet, compare_thumos14, compare_starts, compare_f1,
    compare_edit, compare_alarms, compare_calibration])
def test_matches_brute_force(compare):
    defined = 0
    for seed in range(CASES):
        case = drawn_case(seed)
        metric, expected = compare(label_events(*case), *case)
        got = [*metric.values().values()]
        assert len(got) == len(expected)
        assert all(map(close, got, expected)), (seed, got, expected)
        defined += any(0 < x < 1 for x in expected)
    # The cases are not trivial.
    assert defined > CASES / 5


@pytest.mark.parametrize('metric', [
    lambda events: SegmentAP(events, (.3, .5)),
    lambda events: SegmentAP(events, (.3, .5), 'thumos14'),
    lambda events: StartAP(events, (1, 4)), SegmentF1, EditScore])
def test_video_that_counts_twice_equals_two_videos(metric):
    checked = 0
    for seed in range(30):
        predictions, truth, videos = drawn_case(seed)
        weights = np.random.default_rng(seed).integers(0, 4, len(videos))
        # Unequal scores, because copies of ties would be in another order.
        predictions = [one._replace(score=float(rank)) for rank, one in
                       enumerate(sorted(predictions, key=lambda p: p.score))]
        copies = [[one._replace(video=f'{one.video} {copy}')
                   for one in each
                   for copy in range(weights[videos.index(one.video)])]
                  for each in (predictions, truth)]
        names = [f'{video} {copy}' for video, weight in zip(videos, weights)
                 for copy in range(weight)]
        if not names:
            continue
        got = metric(label_events(predictions, truth, videos)).values(weights)
        expected = metric(label_events(*copies, names)).values()
        assert all(close(got[name], expected[name]) for name in got), seed
        checked += 1
    assert checked > 20


def test_interval_of_the_mean_is_that_of_the_normal_distribution():
    rng = np.random.default_rng(0)
    values = rng.normal(size=400)
    result = bootstrap(lambda weights: dict(
        mean=float(np.average(values, weights=weights))), 400, 2000)['mean']
    half = 1.96 * values.std() / 20
    assert result == pytest.approx(
        (values.mean(), values.mean() - half, values.mean() + half), abs=.01)
    assert result.value == pytest.approx(values.mean())
    # Undefined intervals, and undefined draws.
    result = bootstrap(lambda weights: dict(x=1.), 1)['x']
    assert result.value == 1 and math.isnan(result.low + result.high)
    metric = StartAP(label_events([segment('v', 0, 1, 'x', 1.)],
                                  [segment('v', 0, 1, 'x')], ['v', 'w']),
                     (1, ))
    assert bootstrap(metric.values, 2)['start_mAP@1s'] == (1, 1, 1)


UNSCORED = segment('v', 0, 1, 'x')
ENDLESS = UNSCORED._replace(end=math.nan)


@pytest.mark.parametrize('metric, predicted, true, message', [
    *((None, [one], [], message) for one, message in (
        (segment('v', 2, 1, 'x', 1.), 'start <= end, got 2 to 1'),
        (segment('v', math.nan, 1, 'x', 1.), 'start <= end'),
        (UNSCORED._replace(labels={}), 'must have a class'))),
    *((metric, [UNSCORED], [], '1 of 1 predictions have none')
      for metric in (SegmentAP, StartAP)),
    *((metric, [], [ENDLESS], 'true segments must have ends')
      for metric in (SegmentAP, SegmentF1, Alarms)),
    (lambda events: Alarms(events, {}), [UNSCORED], [],
     'durations must have all videos'),
    (lambda events: Calibration([np.array([[0., 2.]])], [np.array([[0, 1]])]),
     [], [], 'got 0 to 2')])
def test_rejects_segments_and_scores(metric, predicted, true, message):
    with pytest.raises(ValueError, match=message):
        events = label_events(predicted, true)
        metric(events)
