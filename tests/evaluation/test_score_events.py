# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math
import statistics

import event_twins as twins
import numpy as np
import pytest
from event_twins import drawn_case, segment

from mmvidattn.commands import make_parser, score
from mmvidattn.evaluation.events import EventScores, score_events
from mmvidattn.online.frame_scores import FrameScores

NAMES = {
    *(f'mAP@{x / 100:g}' for x in (30, 40, *range(50, 96, 5))),
    'mAP@0.3:0.7', 'mAP@0.5:0.95', 'F1@10', 'F1@25', 'F1@50', 'edit',
    *(f'start_mAP@{x}s' for x in range(1, 11)), 'start_mAP', 'recall',
    'false_alarms_per_hour', 'delay_median', 'delay_p90'}


def test_has_all_metrics():
    predictions, truth, videos = drawn_case(7)
    durations = dict.fromkeys(videos, 30.)
    result = score_events(predictions, truth, durations, draws=50)
    assert set(result) == NAMES
    for value, low, high in result.values():
        assert low <= value <= high or math.isnan(value + low + high)
    assert result == score_events(predictions, truth, durations, draws=50)


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


def test_calibration_of_actions_only():
    rng = np.random.default_rng(0)
    scores = rng.random((8, 3)).astype(np.float32)
    truth = [segment('v', .25, 1., 'x'), segment('w', 0, 1, 'y')]
    result = EventScores(
        [], truth, dict(v=2., w=2.), frame_scores=dict(
            v=FrameScores(4., scores)), classes=['background', 'x', 'y']
        ).values()
    target = [[float(1 <= t < 4), 0.] for t in range(8)]
    ece, brier = twins.calibration([scores[:, 1:].tolist()], [target], 15)
    assert result['ECE'] == pytest.approx(ece, abs=1e-9)
    assert result['Brier'] == pytest.approx(brier, abs=1e-9)


def twin_values(predictions, truth, durations):
    """Return the value of each metric, computed in loops."""
    def mean(twin, *thresholds):
        values = [value for x in thresholds
                  for value in twin(predictions, truth, x).values()]
        return statistics.fmean(values) if values else math.nan

    recall, false, median, p90 = twins.alarms(predictions, truth, durations)
    return {
        'mAP@0.5': mean(twins.activitynet_ap, .5),
        'mAP@0.3:0.7': mean(twins.activitynet_ap, .3, .4, .5, .6, .7),
        'F1@10': twins.f1(predictions, truth, durations, .1),
        'F1@50': twins.f1(predictions, truth, durations, .5),
        'edit': twins.edit(predictions, truth, durations),
        'start_mAP@1s': mean(twins.start_ap, 1),
        'start_mAP': mean(twins.start_ap, *range(1, 11)),
        'recall': recall, 'false_alarms_per_hour': false,
        'delay_median': median, 'delay_p90': p90}


def test_matches_loops_over_all_given_videos():
    """Videos without events count, and other videos do not."""
    for seed in range(14):
        predictions, truth, videos = drawn_case(seed)
        durations = {video: 20 + i / 3 for i, video in enumerate(
            [*videos[1:], 'empty', 'empty too'])}
        chosen, true = ([one for one in each if one.video in durations]
                        for each in (predictions, truth))
        values = EventScores(predictions, truth, durations).values()
        for name, value in twin_values(chosen, true, durations).items():
            assert values[name] == pytest.approx(
                value, abs=1e-9, rel=0, nan_ok=True), (seed, name)


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
