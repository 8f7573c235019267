# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import event_twins as twins
import numpy as np
import pytest
import torch
from mmaction.registry import METRICS

from mmvidattn.evaluation.events import FrameScores, detect_events
from mmvidattn.online.event_thresholds import Thresholds

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
        twins.segment(name, start / RATE, stop / RATE, CLASSES[k])
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
        predicted, truth = events(videos, **options)

        def found(name, **more):
            return evaluate(videos, type=name, rate=RATE, **config, **more)

        assert found('EventF1') == {
            **{f'F1@{x}': pytest.approx(
                twins.f1(predicted, truth, list(videos), x / 100))
               for x in (10, 25, 50)},
            'edit': pytest.approx(twins.edit(predicted, truth, list(videos)))}
        for twin, key, value in (
                (twins.activitynet_ap(predicted, truth, .5), 'mAP@0.5',
                 found('EventAP', tious=[.5])),
                (twins.start_ap(predicted, truth, 1), 'start_mAP@1s',
                 found('EventStartAP', offsets=[1]))):
            assert value == {key: pytest.approx(np.mean([*twin.values()]))}
        assert [*found('EventAlarms').values()] == pytest.approx(twins.alarms(
            predicted, truth, dict(v=90 / RATE, w=60 / RATE)))


def test_scores_without_the_ignored_class_sum_to_one():
    videos = drawn_videos(2)
    found = evaluate(videos, type='FrameCalibration', rate=RATE,
                     ignore_index=3)
    kept = {name: scores[:, :3] / scores[:, :3].sum(1, keepdims=True)
            for name, (scores, _) in videos.items()}
    ece, brier = twins.calibration(
        [scores[:, 1:].tolist() for scores in kept.values()],
        [target[:, 1:3].tolist() for _, target in videos.values()], 15)
    assert found == dict(ECE=pytest.approx(ece), Brier=pytest.approx(brier))


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
