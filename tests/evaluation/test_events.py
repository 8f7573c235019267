# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math
import random
import statistics

import event_twins as twins
import numpy as np
import pytest
import torch
from event_twins import drawn_case, segment
from mmaction.registry import METRICS

from mmvidattn.commands import make_parser, score
from mmvidattn.evaluation.events import (
    ACTIVITYNET,
    THUMOS14,
    Alarms,
    Calibration,
    EventScores,
    SegmentAP,
    SegmentF1,
    StartAP,
    bootstrap,
    detect_events,
    label_events,
    score_events,
)
from mmvidattn.online.event_thresholds import Thresholds
from mmvidattn.online.frame_scores import FrameScores

CASES = 40


def twin_values(predictions, truth, durations, ap=twins.activitynet_ap):
    """Return the value of each metric, computed in loops."""
    def mean(twin, thresholds):
        values = [value for x in thresholds
                  for value in twin(predictions, truth, x).values()]
        return statistics.fmean(values) if values else math.nan

    overlaps = {f'mAP@{x:g}': [x] for x in {*THUMOS14, *ACTIVITYNET}} | {
        'mAP@0.3:0.7': (.3, .4, .5, .6, .7),
        'mAP@0.5:0.95': [x / 100 for x in range(50, 100, 5)]}
    offsets = {f'start_mAP@{x}s': [x] for x in range(1, 11)}
    offsets['start_mAP'] = range(1, 11)
    return {
        **{name: mean(ap, each) for name, each in overlaps.items()},
        **{name: mean(twins.start_ap, each) for name, each in offsets.items()},
        **{f'F1@{x}': twins.f1(predictions, truth, durations, x / 100)
           for x in (10, 25, 50)},
        'edit': twins.edit(predictions, truth, durations),
        **dict(zip(('recall', 'false_alarms_per_hour', 'delay_median',
                    'delay_p90'),
                   twins.alarms(predictions, truth, durations)))}


def drawn_durations(seed, videos):
    """Leave out a video in every second case, and add two empty ones."""
    return {video: 20 + i / 3 for i, video in enumerate(
        [*videos[seed % 2:], 'empty', 'empty too'])}


@pytest.mark.parametrize('protocol', ['activitynet', 'thumos14'])
def test_matches_loops_over_all_given_videos(protocol):
    """Videos without events count, and other videos do not."""
    is_trivial = {}
    for seed in range(CASES):
        predictions, truth, videos = drawn_case(seed)
        durations = drawn_durations(seed, videos)
        chosen, true = ([one for one in each if one.video in durations]
                        for each in (predictions, truth))
        if protocol == 'activitynet':
            want = twin_values(chosen, true, durations)
        else:
            # Class d is never predicted.
            truth, true = ([
                one._replace(labels=dict(action='Ambiguous'))
                if one.labels['action'] == 'd' else one for one in each]
                for each in (truth, true))
            want = {name: value for name, value in twin_values(
                chosen, true, durations, twins.thumos14_ap).items()
                if name.startswith('mAP')}
        found = EventScores(predictions, truth, durations,
                            protocol=protocol).values()
        assert protocol == 'thumos14' or found.keys() == want.keys()
        for name, value in want.items():
            assert found[name] == pytest.approx(
                value, abs=1e-9, rel=0, nan_ok=True), (seed, name)
            is_trivial.setdefault(name, []).append(not value > 0)
    assert all(sum(each) < CASES - 2 for each in is_trivial.values())


@pytest.mark.parametrize('protocol', ['activitynet', 'thumos14'])
def test_video_that_counts_twice_equals_two_videos(protocol):
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
        if names:
            assert EventScores(
                predictions, truth, dict.fromkeys(videos, 9.),
                protocol=protocol).values(weights) == pytest.approx(
                EventScores(*copies, dict.fromkeys(names, 9.),
                            protocol=protocol).values(),
                abs=1e-9, rel=0, nan_ok=True), seed


def test_calibration_matches_loops():
    rng = random.Random(0)
    for _ in range(CASES):
        bins, number = rng.randint(1, 6), rng.randint(1, 3)
        steps = [rng.randint(1, 6) for _ in range(rng.randint(1, 3))]
        scores = [[[rng.choice([0, .25, .5, .75, 1, rng.random()])
                    for _ in range(number)] for _ in range(n)] for n in steps]
        targets = [[[rng.randint(0, 1) for _ in range(number)]
                    for _ in range(n)] for n in steps]
        assert [*Calibration(
            [np.array(x) for x in scores], [np.array(x) for x in targets],
            bins).values().values()] == pytest.approx(
                twins.calibration(scores, targets, bins), abs=1e-9)


def test_calibration_of_actions_only():
    rng = np.random.default_rng(0)
    scores = rng.random((8, 3)).astype(np.float32)
    truth = [segment('v', .25, 1., 'x'), segment('w', 0, 1, 'y')]
    result = EventScores(
        [], truth, dict(v=2., w=2.), frame_scores=dict(
            v=FrameScores(4., scores)), classes=['background', 'x', 'y']
        ).values()
    target = [[float(1 <= t < 4), 0.] for t in range(8)]
    assert (result['ECE'], result['Brier']) == pytest.approx(
        twins.calibration([scores[:, 1:].tolist()], [target], 15), abs=1e-9)


def test_leaves_out_what_needs_scores_or_ends():
    predictions = [segment('v', 0, 5, 'x')]
    truth = [segment('v', 0, 6, 'x')]
    scores = EventScores(predictions, truth)
    assert set(scores.left_out) == {'SegmentAP', 'AveragedAP', 'StartAP'}
    assert scores.values()['F1@50'] == 1
    scores = EventScores(
        [predictions[0]._replace(score=1.)], [truth[0]._replace(end=math.nan)],
        frame_scores=dict(v=FrameScores(4., np.ones((8, 2)))),
        classes=['background', 'x'])
    assert set(scores.metrics) == {'EditScore', 'StartAP'}
    assert 'must have ends' in scores.left_out['Calibration']
    assert scores.values()['start_mAP@1s'] == 1


def test_intervals_are_those_of_the_normal_distribution():
    values = np.random.default_rng(0).normal(size=400)
    result = bootstrap(lambda weights: dict(
        mean=float(np.average(values, weights=weights))), 400, 2000)['mean']
    half = 1.96 * values.std() / 20
    assert result == pytest.approx(
        (values.mean(), values.mean() - half, values.mean() + half), abs=.01)
    assert result.value == pytest.approx(values.mean())
    # Undefined intervals, and undefined draws.
    result = bootstrap(lambda weights: dict(x=1.), 1)['x']
    assert result.value == 1 and math.isnan(result.low + result.high)
    case = [segment('v', 0, 1, 'x', 1.)], [segment('v', 0, 1, 'x')]
    result, again = (score_events(*case, dict(v=9., w=9.), draws=9)
                     for _ in range(2))
    assert result == again and result['start_mAP@1s'] == (1, 1, 1)


def test_videos_without_events_belong_to_a_subset(tmp_path):
    event = dict(segment=[1, 3], label='x')
    (tmp_path / 'true.json').write_text(json.dumps(dict(database={
        name: dict(subset=subset, duration=duration, annotations=events)
        for name, subset, duration, events in (
            ('v', 'test', 20, [event]), ('empty', 'Test', 30, []),
            ('w', 'train', 40, [event]))})))
    (tmp_path / 'predicted.csv').write_text(
        'video,start,end,label\nv,1,3,x\nempty,2,4,x\nw,5,6,x\n')
    scores, durations, _ = score.compute(make_parser('score').parse_args([
        f'{tmp_path}/predicted.csv', f'{tmp_path}/true.json', '--subset',
        'test']))
    assert durations == dict(v=20, empty=30)
    found = scores.values()
    assert (found['recall'], found['false_alarms_per_hour']) == (1, 72)


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


# Metrics of the test loop

CLASSES = ['background', 'jump', 'run', 'Ambiguous']
RATE = 4


def drawn_videos(seed=0):
    """Return scores and targets of two videos by name."""
    rng = np.random.default_rng(seed)
    videos = {}
    for name, steps in ('v', 90), ('w', 60):
        target = np.zeros((steps, 4), np.float32)
        for start in range(5, steps - 20, 25):
            target[start:start + rng.integers(5, 20), rng.integers(1, 3)] = 1
        scores = target * 3 + rng.normal(size=target.shape)
        scores = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        videos[name] = scores.astype(np.float32), target
    return videos


def evaluate(videos, **config):
    metric = METRICS.build(config)
    metric.dataset_meta = dict(classes=CLASSES)
    for name, (scores, target) in videos.items():
        # Two windows for each video.
        for steps in np.array_split(np.arange(len(target)), 2):
            metric.process(None, [dict(
                evaluation_mode='dense', video_name=name,
                video_length=len(target), horizons=[], num_work=len(steps),
                score_rows=list(range(len(steps))), score_steps=list(steps),
                anticipation_steps=[], is_first_window=False,
                is_whole_video=False, pred_action=torch.tensor(scores[steps]),
                gt_action=torch.tensor(target[steps]))])
    found = metric.evaluate(4)
    assert {type(value) for value in found.values()} == {float}
    return {name.partition('/')[2]: value for name, value in found.items()}


def events(videos, **options):
    """Return predicted and annotated events."""
    predicted = detect_events(
        {name: FrameScores(RATE, scores)
         for name, (scores, _) in videos.items()}, CLASSES, {0}, **options)
    return predicted, [
        segment(name, start / RATE, stop / RATE, CLASSES[k])
        for name, (_, target) in videos.items() for k in (1, 2, 3)
        for start, stop in np.flatnonzero(np.diff(
            target[:, k], prepend=0, append=0)).reshape(-1, 2)]


def test_values_are_those_of_the_detected_events(tmp_path):
    videos = drawn_videos()
    rules = dict(jump=dict(on=.45, off=.2, smoothing=.5, min_duration=.25))
    Thresholds(rules, 'f1@50', 1.).write(tmp_path / 'thresholds.json')
    for options, config in (
            ({}, {}), (dict(on=.7), dict(events=dict(on=.7))),
            (dict(thresholds=rules),
             dict(thresholds=str(tmp_path / 'thresholds.json')))):
        want = twin_values(*events(videos, **options),
                           dict(v=90 / RATE, w=60 / RATE))
        found = {}
        for name, more in dict(
                EventF1={}, EventAP=dict(tious=[.5]), EventAlarms={},
                EventStartAP=dict(offsets=[1])).items():
            found |= evaluate(videos, type=name, rate=RATE, **config, **more)
        assert found == {name: pytest.approx(want[name]) for name in (
            'F1@10', 'F1@25', 'F1@50', 'edit', 'mAP@0.5', 'start_mAP@1s',
            'recall', 'false_alarms_per_hour', 'delay_median', 'delay_p90')}


def test_scores_without_the_ignored_class_sum_to_one():
    videos = drawn_videos(2)
    found = evaluate(videos, type='FrameCalibration', rate=RATE,
                     ignore_index=3)
    kept = {name: scores[:, :3] / scores[:, :3].sum(1, keepdims=True)
            for name, (scores, _) in videos.items()}
    assert [found['ECE'], found['Brier']] == pytest.approx(twins.calibration(
        [scores[:, 1:].tolist() for scores in kept.values()],
        [target[:, 1:3].tolist() for _, target in videos.values()], 15))


@pytest.mark.parametrize('config, message', [
    # Logits instead of probabilities.
    (dict(type='EventF1', rate=RATE), 'pred_action must have probabil'),
    (dict(type='EventF1', rate=4, tious=[0]), 'tious must be'),
    (dict(type='EventAlarms', rate=4, thresholds='x'), 'cannot read')])
def test_rejects_scores_and_arguments(config, message):
    videos = {name: (scores * 9, target)
              for name, (scores, target) in drawn_videos().items()}
    with pytest.raises(ValueError, match=message):
        evaluate(videos, **config)
