# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import event_twins as twins
import numpy as np
import pytest
from event_twins import segment

from mmvidattn.evaluation.events import detect_events, tune_thresholds
from mmvidattn.evaluation.events.tune_thresholds import (
    OFF_RATIOS,
    _averages,
    _candidates,
    _Matches,
    _rounded,
    _TimeAxis,
)
from mmvidattn.online.frame_scores import FrameScores

CLASSES = 'background', 'jump', 'run'


def drawn_scores(seed, lengths=(60, 1, 45), smoothness=3):
    """Draw scores of videos with different rates, some of them equal."""
    rng = np.random.default_rng(seed)
    videos = {}
    for i, length in enumerate(lengths):
        scores = rng.random((length + smoothness, 3))
        scores = np.lib.stride_tricks.sliding_window_view(
            scores, smoothness, axis=0).mean(-1)[:length]
        videos[f'v{i}'] = FrameScores(
            (2., 4., 7.)[i % 3], scores.round(2).astype(np.float32))
    return videos


def drawn_truth(seed, videos, number=12):
    """Draw overlapping segments, which may end after the video."""
    rng = np.random.default_rng(seed)
    results = []
    for _ in range(number):
        video = rng.choice(list(videos))
        length = len(videos[video].scores) / videos[video].rate
        start = round(rng.random() * length, 1)
        results.append(segment(video, start, start + rng.integers(0, 8) / 2,
                               rng.choice(CLASSES[1:])))
    return results


def noisy_videos(seed, num_videos=3, steps=600, rate=4.):
    """Return scores that show the actions, with noise of each class."""
    rng = np.random.default_rng(seed)
    videos, truth = {}, []
    for i in range(num_videos):
        target = np.zeros((steps, 3))
        for k, length in (1, 20), (2, 60):
            for start in rng.choice(steps // 80, 3, replace=False) * 80:
                target[start:start + length, k] = 1
                truth.append(segment(f'v{i}', start / rate,
                                     (start + length) / rate, CLASSES[k]))
        # The classes have different ranges of scores.
        scores = target * [0, .25, .6] + rng.normal(0, .08, target.shape)
        videos[f'v{i}'] = FrameScores(
            rate, scores.clip(0, 1).astype(np.float32))
    return videos, truth


@pytest.mark.parametrize('seed', range(6))
def test_search_has_the_events_of_the_event_detector(seed):
    videos = drawn_scores(seed)
    rng = np.random.default_rng(seed)
    axis, seconds = _TimeAxis(videos), (0., .3, 2.)
    averages = _averages(videos, seconds)
    compared = 0
    for _ in range(10):
        on = _rounded(rng.choice([.4, .5, .6, rng.random() * .8 + .1]))
        off = _rounded(on * rng.choice(OFF_RATIOS))
        choice, duration = rng.integers(3), rng.choice([0., .5, 1.])
        k = rng.integers(1, 3)
        expected = [
            (one.video, one.start, one.end) for one in detect_events(
                videos, CLASSES, thresholds={CLASSES[k]: dict(
                    on=on, off=off, smoothing=seconds[choice],
                    min_duration=duration)})
            if one.labels['action'] == CLASSES[k]]
        events, = axis.events(averages[choice][:, k],
                              [tuple(np.float32([on, off]))])
        got = [(axis.names[v], a, b) for v, a, b in zip(*events)
               if b - a >= duration - 1e-6]
        assert got == expected
        compared += len(got)
    assert compared > 5


@pytest.mark.parametrize('seed', range(6))
def test_search_has_the_values_of_the_metrics(seed):
    videos = drawn_scores(seed)
    truth = [one._replace(labels=dict(action='jump'))
             for one in drawn_truth(seed, videos)]
    axis, durations = _TimeAxis(videos), (0., .5, 1.)
    true, seen = axis.sort(truth), set()
    for on, off in (.4, .4), (.5, .4), (.6, .3):
        events, = axis.events(_averages(videos, (0., ))[0][:, 1],
                              [tuple(np.float32([on, off]))])
        f1, false = _Matches(axis, true, .1).values(events, durations)
        recall, alarms = _Matches(axis, true, None).values(events, durations)
        for i, duration in enumerate(durations):
            got = detect_events(
                videos, CLASSES, ignore=(0, 2),
                on=on, off=off, min_duration=duration)
            expected = twins.f1(got, truth, list(videos), .1)
            assert f1[i] == pytest.approx(expected, abs=1e-12)
            expected = twins.alarms(got, truth, dict(all=3600))
            assert recall[i] == pytest.approx(expected[0], abs=1e-12)
            assert alarms[i] == expected[1]
            seen |= {f1[i], recall[i]}
    assert len(seen) > 2


@pytest.mark.parametrize('objective, limit', [('f1@50', None),
                                              ('recall', 60.)])
def test_finds_the_best_of_all_candidates(objective, limit):
    videos = drawn_scores(3, (20, ))
    truth = drawn_truth(5, videos, 8)
    smoothing, durations = (0., 1.), (0., 1.)
    tuned = tune_thresholds(videos, truth, CLASSES, (0, ), objective, limit,
                            smoothing, durations)
    axis = _TimeAxis(videos)
    for k, name in (1, 'jump'), (2, 'run'):
        own = [one for one in truth if one.labels['action'] == name]
        assert own
        best = 0
        for seconds, averages in zip(smoothing, _averages(videos, smoothing)):
            starts = _candidates(averages[:, k], axis.inside(axis.sort(own)))
            for on in starts:
                for ratio in OFF_RATIOS:
                    for duration in durations:
                        result = detect_events(
                            videos, CLASSES, {0, 1, 2} - {k}, thresholds={
                                name: dict(on=on, off=_rounded(on * ratio),
                                           smoothing=seconds,
                                           min_duration=duration)})
                        if objective == 'f1@50':
                            value = twins.f1(result, own, ['v0'], .5)
                        else:
                            value, alarms, *_ = twins.alarms(
                                result, own, dict(v0=axis.seconds))
                            value = value if alarms <= limit else 0
                        best = max(best, value)
        assert tuned.values[name] == pytest.approx(best, abs=1e-12)
        assert best > 0


def test_tuned_detector_reaches_the_reported_value():
    videos, truth = noisy_videos(0)
    tuned = tune_thresholds(videos, truth, CLASSES)
    result = detect_events(videos, CLASSES, thresholds=tuned.classes)
    assert twins.f1(result, truth, list(videos), .5) == pytest.approx(
        tuned.value)
    assert tuned.value > .95
    for name in 'jump', 'run':
        own = [[one for one in each if one.labels['action'] == name]
               for each in (result, truth)]
        assert twins.f1(*own, list(videos), .5) == pytest.approx(
            tuned.values[name])
    # The defaults miss the class with low scores.
    assert tuned.about.pop('value_of_defaults') < .7
    # There are 3 videos of 150 s.
    assert tuned.about == dict(videos=3, segments=18, hours=.125)
    assert set(tuned.classes) == {'jump', 'run'}


def test_tuned_thresholds_are_better_on_other_videos():
    tuned = tune_thresholds(*noisy_videos(0), CLASSES)
    videos, truth = noisy_videos(100)
    f1 = [twins.f1(detect_events(videos, CLASSES, **options), truth,
                   list(videos), .5)
          for options in ({}, dict(thresholds=tuned.classes))]
    assert f1[1] > max(.9, f1[0] + .2)


def test_recall_keeps_the_limit_of_false_alarms():
    videos, truth = noisy_videos(1, steps=320)
    hours = 3 * 320 / 4 / 3600
    recalls = []
    for limit in 0., 40., 1e9:
        tuned = tune_thresholds(videos, truth, CLASSES, objective='recall',
                                false_alarms_per_hour=limit)
        result = detect_events(videos, CLASSES, thresholds=tuned.classes)
        recall, alarms, *_ = twins.alarms(
            result, truth, dict(all=3600 * hours))
        assert recall == pytest.approx(tuned.value)
        # For each of two classes.
        assert alarms <= 2 * limit
        recalls.append(recall)
    assert recalls == sorted(recalls) and recalls[-1] == 1


def test_class_without_segments_keeps_the_defaults():
    videos, truth = noisy_videos(2, steps=320)
    truth = [one for one in truth if one.labels['action'] == 'jump']
    tuned = tune_thresholds(videos, truth, CLASSES)
    assert tuned.classes['run'] == dict(
        on=.5, off=.3, smoothing=0., min_duration=.5)
    assert math.isnan(tuned.values['run'])
    assert tuned.classes['jump'] != tuned.classes['run']


def test_segments_of_ignored_classes_and_other_videos_are_left_out():
    videos, truth = noisy_videos(2, steps=320)
    more = [segment('v0', 0, 9, 'background'), segment('w', 0, 9, 'swim')]
    assert tune_thresholds(videos, truth + more, CLASSES) == (
        tune_thresholds(videos, truth, CLASSES))


@pytest.mark.parametrize('change, message', [
    (dict(objective='recall'), 'need each other'),
    (dict(false_alarms_per_hour=1.), 'need each other'),
    (dict(objective='f1'), 'objective must be'),
    (dict(segments=[]), 'got none'),
    (dict(segments=[segment('v0', 0, 1, 'swim')]), 'got swim'),
    (dict(segments=[segment('v0', 0, math.nan, 'jump')]), 'must have ends'),
    (dict(classes=CLASSES[:2]), r'must have shape \[T, 2\]'),
    (dict(videos=dict(v0=(4., np.full((5, 3), np.nan)))), 'must be finite'),
    (dict(videos=dict(v0=(0., np.zeros((5, 3))))), 'must be positive')])
def test_rejects_arguments(change, message):
    videos, truth = noisy_videos(0)
    with pytest.raises(ValueError, match=message):
        tune_thresholds(**{**dict(videos=videos, segments=truth,
                                  classes=CLASSES), **change})
