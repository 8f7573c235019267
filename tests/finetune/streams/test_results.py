# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import numpy as np
import pytest

from mmvidattn.datasets.annotations.video_segment import VideoSegment
from mmvidattn.finetune.streams.results import format_metrics, measure
from mmvidattn.online.frame_scores import FrameScores


def event(start, end, label, score=None):
    return VideoSegment(f'{start}', 'v', start, end, dict(action=label), '',
                        score=score)


def test_measures_events():
    truth = [event(0, 10, 'a'), event(20, 30, 'a'), event(40, 50, 'b')]
    found = [event(1, 10, 'a', .9), event(60, 70, 'a', .8)]
    scores = dict(v=FrameScores(2., np.zeros((200, 3), np.float32)))
    classes = ['background', 'a', 'b']
    metrics = measure(found, truth, scores, classes)
    # One of two predictions and one of three events match.
    assert metrics['F1@50'] == pytest.approx(2 / 5)
    assert metrics['recall'] == pytest.approx(1 / 3, abs=1e-4)
    # A false alarm in 100 s.
    assert metrics['false_alarms_per_hour'] == pytest.approx(36)
    assert metrics['classes'] == [dict(name='a', events=2, f1=.5),
                                  dict(name='b', events=1, f1=0.)]
    text = format_metrics(dict(
        split='test', videos=1, frames={'online/mAP_stream': .5},
        tuned=metrics, untuned=measure([], truth, scores, classes)))
    assert text.splitlines()[-2].split() == ['all', '3', '40.0', '0.0']
    assert 'recall 33.3 %, 36.0 false alarms per hour' in text
