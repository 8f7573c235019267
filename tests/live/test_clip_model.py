# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import time

import numpy as np
import pytest
from live_fixtures import Script

import mmvidattn
from mmvidattn.live import LiveClipModel, OnlineDetector, StreamRun

WINDOW, STRIDE = 24, 6


@pytest.fixture(scope='module')
def model(clip_files):
    return LiveClipModel(*clip_files)


def test_scores_match_sliding_windows(model, clip):
    run = StreamRun(model, clip)
    results = list(run)
    assert run.rate == 2 and run.classes[0] == 'up'
    assert [d.step for d in results] == list(range(14))
    assert [d.time for d in results] == [(i + 1) / 2 for i in range(14)]
    assert {len(d.images) for d in results} == {STRIDE}
    assert all(d.anticipated.shape == (0, 8) for d in results)
    classifier = mmvidattn.VideoClassifier(run.model)
    windows = list(classifier.windows(clip, 2, .5))
    for detection, window in zip(results[3:], windows):
        np.testing.assert_allclose(
            detection.scores, window.probabilities, rtol=1e-5, atol=1e-7)
    assert np.ptp([d.scores for d in results], axis=0).max() > .1
    # A window encodes one new group and shares all other groups.
    assert run.session.encoder.num_shared > run.session.encoder.num_encoded
    latency = run.report()['latency']
    assert {'features', 'head', 'total', 'lag'} <= set(latency)
    assert 'flow' not in latency


def test_every_class_can_be_an_action(model, clip, tmp_path):
    model._event_options.update(on=.2, off=.1, min_duration=.5)
    run = StreamRun(model, clip, tmp_path / 'events.jsonl')
    scores = np.array([d.scores for d in run])
    # The first class is not a background.
    starts = {e['index'] for e in run.events.recent if e['event'] == 'start'}
    assert starts and starts <= set(np.flatnonzero((scores >= .2).any(0)))


def test_windows_contain_frames_of_dropped_steps(model):
    """Scores after a dropped step match the scores of a recording."""
    want = {d.step: d.scores for d in StreamRun(model, Script(range(120)))}
    run = StreamRun(model, Script(range(120), live=True, wait=.001),
                    queue_size=1)
    got = {}
    for detection in run:
        got[detection.step] = detection.scores
        time.sleep(.03)
    assert run.dropped > 0 and 19 in got
    for step, scores in got.items():
        np.testing.assert_allclose(scores, want[step], rtol=1e-5, atol=1e-7)


def test_long_gap_restarts_the_session(model):
    run = StreamRun(model, Script([*range(30), *range(1230, 1260)]))
    results = list(run)
    assert [d.step for d in results] == [*range(5), *range(205, 210)]
    # Scores after the gap do not depend on frames before it.
    fresh = list(StreamRun(model, Script(range(1230, 1260))))
    np.testing.assert_allclose([d.scores for d in results[5:]],
                               [d.scores for d in fresh], rtol=1e-5)
    assert run.missing == 200


def test_detector_takes_options_of_clip_models(clip_files, clip):
    config, checkpoint = clip_files
    run = OnlineDetector(config, checkpoint, clip, seconds=1, stride=.25)
    assert run.session.window_frames == 12 and run.rate == 4
    other = OnlineDetector(config, checkpoint, clip, seconds=1, stride=.25,
                           queue_size=7).with_source(clip)
    assert other.session.window_frames == 12
    assert other.options.queue_size == 7
    with pytest.raises(ValueError, match='may have .*seconds and stride'):
        OnlineDetector(config, checkpoint, clip,
                       cfg_options={'online.extractors': {}})
    with pytest.raises(ValueError, match='stride must be .* 1 s, got 2'):
        OnlineDetector(config, checkpoint, clip, seconds=1, stride=2)


def test_classes_without_labels_are_numbered(clip_files):
    model = LiveClipModel(clip_files[0], None, cfg_options={
        'test_dataloader.dataset.metainfo.classes': '',
        'train_dataloader.dataset.metainfo.classes': ''})
    assert model.classes == [f'class {i}' for i in range(8)]
    assert model.ignore == set()
    assert model.new_event_detector().names == model.classes
