# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import math

import event_twins as twins
import numpy as np
import pytest
from event_twins import drawn_case, segment

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
    assert result['F1@50'].value == pytest.approx(
        twins.f1(predictions, truth, videos, .5))
    recall, alarms, *_ = twins.alarms(predictions, truth, durations)
    assert result['recall'].value == pytest.approx(recall)
    assert result['false_alarms_per_hour'].value == pytest.approx(alarms)
    for value, low, high in result.values():
        assert low <= value <= high or math.isnan(value + low + high)
    assert result == score_events(predictions, truth, durations, draws=50)


def test_leaves_out_what_needs_scores_or_ends():
    predictions = [segment('v', 0, 5, 'x')]
    truth = [segment('v', 0, 6, 'x')]
    scores = EventScores(predictions, truth)
    assert set(scores.left_out) == {'SegmentAP', 'AveragedAP', 'StartAP'}
    assert scores.values()['F1@50'] == 1
    scores = EventScores([predictions[0]._replace(score=1.)],
                         [truth[0]._replace(end=math.nan)])
    assert set(scores.metrics) == {'EditScore', 'StartAP'}
    assert scores.values()['start_mAP@1s'] == 1


def test_calibration_of_actions_only():
    rng = np.random.default_rng(0)
    scores = rng.random((8, 3)).astype(np.float32)
    truth = [segment('v', .25, 1., 'x'), segment('w', 0, 1, 'y')]
    result = EventScores(
        [], truth, dict(v=2., w=2.), frame_scores=dict(
            v=FrameScores(4., scores)),
        classes=['background', 'x', 'y']).values()
    target = [[float(1 <= t < 4), 0.] for t in range(8)]
    ece, brier = twins.calibration([scores[:, 1:].tolist()], [target], 15)
    assert result['ECE'] == pytest.approx(ece, abs=1e-9)
    assert result['Brier'] == pytest.approx(brier, abs=1e-9)
