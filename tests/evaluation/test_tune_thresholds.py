# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import itertools
import math
import sys

import event_twins as twins
import numpy as np
import pytest
from event_twins import segment

from mmvidattn.evaluation.events import detect_events, tune_thresholds
from mmvidattn.online.frame_scores import FrameScores

CLASSES = 'background', 'jump', 'run'
FEW = dict(smoothing=(0., .5), min_durations=(0., .5))


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


def noisy_videos(seed, num_videos=3, steps=320, rate=4.):
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


@pytest.mark.parametrize('seed, objective, limit', [
    (0, 'f1@50', None), (1, 'f1@25', None), (0, 'recall', 400.),
    (1, 'recall', 100.)])
def test_no_other_thresholds_are_better(seed, objective, limit, monkeypatch):
    """The detector reaches the reported values, and no rule exceeds them.

    A distance from the usual rule counts against a rule, less so if there are
    many events.
    """
    search, ratios = sys.modules[tune_thresholds.__module__], (1., .6, .1)
    monkeypatch.setattr(search, 'NEIGHBORS', 0.)
    monkeypatch.setattr(search, 'OFF_RATIOS', ratios)
    videos = drawn_scores(seed)
    truth = drawn_truth(seed, videos)
    seconds = sum(len(each.scores) / each.rate for each in videos.values())
    smoothing, durations = (0., 1.), (0., .5)
    tuned = tune_thresholds(videos, truth, CLASSES, (0, ), objective, limit,
                            smoothing, durations)

    usual = min(one.end - one.start for one in truth) / 2

    def pull_of(k, rule):
        number = sum(one.labels['action'] == CLASSES[k] for one in truth)
        on, off = rule['on'], rule['off']
        return 1 / number * (
            math.log(on / (1 - on))**2 + math.log(off / on / .6)**2
            + math.log((rule['smoothing'] + .5) / .5)**2
            + math.log((rule['min_duration'] + .5) / (usual + .5))**2)

    def value_of(k, rule):
        """Return the objective; 0 beyond the limit of false alarms."""
        own = [one for one in truth if one.labels['action'] == CLASSES[k]]
        found = detect_events(videos, CLASSES, {0, 1, 2} - {k},
                              thresholds={CLASSES[k]: rule})
        if limit is None:
            return twins.f1(found, own, list(videos), int(objective[3:]) / 100)
        recall, alarms, *_ = twins.alarms(found, own, dict(all=seconds))
        return recall if alarms <= limit else 0

    for k, name in (1, 'jump'), (2, 'run'):
        best = value_of(k, tuned.classes[name])
        assert best == pytest.approx(tuned.values[name], abs=1e-9)
        best -= pull_of(k, tuned.classes[name])
        scores = np.concatenate([each.scores for each in videos.values()])
        ends = scores[:, k].min(), scores[:, k].max()
        for on in np.linspace(*ends, 12)[1:11:4]:
            on = min(max(.05, float(f'{on:.4g}')), .95)
            for ratio, smooth, duration in itertools.product(
                    ratios, smoothing, durations):
                rule = dict(on=on, off=float(f'{on * ratio:.4g}'),
                            smoothing=smooth, min_duration=duration)
                assert value_of(k, rule) - pull_of(k, rule) <= best + 1e-6


def test_tuned_detector_reaches_the_reported_value():
    videos, truth = noisy_videos(0)
    tuned = tune_thresholds(videos, truth, CLASSES, smoothing=(0., .25, 1.))
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
    # There are 3 videos of 80 s.
    assert tuned.about == dict(videos=3, segments=18, hours=.0667,
                               events=dict(jump=9, run=9))
    assert 'jump (9), run (9)' in tuned.warning
    assert set(tuned.classes) == {'jump', 'run'}


def test_few_events_keep_close_to_the_defaults():
    """Chance scores: the best thresholds on a few events mean nothing."""
    videos = drawn_scores(0, (300, 300))
    far = []
    for number in 1, 4, 64:
        rules = tune_thresholds(videos, drawn_truth(3, videos, number),
                                CLASSES, **FEW).classes.values()
        assert all(.05 <= rule['on'] <= .95 for rule in rules)
        far.append(max(abs(math.log(rule['on'] / (1 - rule['on'])))
                       for rule in rules))
    assert far[0] < 1 and far == sorted(far)


def test_default_candidates_and_weights():
    """The rules change with the constants of the search.

    Low scores need thresholds near the lowest candidate.
    """
    classes = 'background', 'low', 'high', 'usual'
    rng = np.random.default_rng(0)
    videos, truth = {}, []
    for video in 'v0', 'v1':
        target = np.zeros((240, 4))
        for k in 1, 2, 3:
            for start in rng.choice(220, 6, replace=False):
                stop = start + rng.integers(3, 20)
                target[start:stop, k] = 1
                truth.append(segment(video, start / 4, stop / 4, classes[k]))
        noise = rng.normal(0, .2, (244, 4))
        noise = np.mean([noise[i:240 + i] for i in range(4)], 0)
        scores = (.35 + .3 * target + noise).clip(0, 1)
        scores[:, 1] *= .15
        scores[:, 2] = 1 - (1 - scores[:, 2]) * .06
        videos[video] = FrameScores(4., scores.astype(np.float32))
    tuned = tune_thresholds(videos, truth, classes).classes
    assert tuned['low'] == dict(on=.09602, off=.05761, smoothing=0.,
                                min_duration=.5)
    assert tuned['usual'] == dict(on=.6606, off=.3964, smoothing=0.,
                                  min_duration=.5)


def test_an_overlap_equal_to_the_threshold_counts():
    scores = np.zeros((8, 3), np.float32)
    scores[:4, 1] = 1
    tuned = tune_thresholds(dict(v=(1., scores)), [segment('v', 0, 2, 'jump')],
                            CLASSES, smoothing=(0., ), min_durations=(0., ))
    assert tuned.values['jump'] == tuned.value == 1


def test_only_annotated_actions_of_the_videos_are_tuned():
    videos, truth = noisy_videos(2, num_videos=1)
    truth = [one for one in truth if one.labels['action'] == 'jump']
    tuned = tune_thresholds(videos, truth, CLASSES, **FEW)
    assert tuned.classes['run'] == dict(
        on=.5, off=.3, smoothing=0., min_duration=.5)
    assert math.isnan(tuned.values['run'])
    assert tuned.classes['jump'] != tuned.classes['run']
    # Segments of ignored classes and of other videos are left out.
    more = [segment('v0', 0, 9, 'background'), segment('w', 0, 9, 'swim')]
    other = tune_thresholds(videos, truth + more, CLASSES, **FEW)
    assert (other.classes, other.value, other.about) == (
        tuned.classes, tuned.value, tuned.about)


@pytest.mark.parametrize('change, message', [
    (dict(objective='recall'), 'need each other'),
    (dict(false_alarms_per_hour=1.), 'need each other'),
    (dict(objective='f1'), 'objective must be'),
    (dict(segments=[]), 'no segments'),
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
