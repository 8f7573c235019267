# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection by models of features, of frames and of clips."""
import time
from itertools import islice

import cv2
import decord
import numpy as np
import pytest
import torch
from live_fixtures import CLASSES, ROOT, Script, noise, write_tsn
from online.networks import scores_of_images

import mmvidattn
from mmvidattn.commands import main
from mmvidattn.live import (
    FeatureStreamModel,
    LiveClipModel,
    LiveVideoModel,
    OnlineDetector,
    StreamRun,
)
from mmvidattn.online import StreamSession


@pytest.fixture(scope='module')
def frame_files(tmp_path_factory):
    """Config and checkpoint of a detector of frames, at 12 frames/s."""
    folder = tmp_path_factory.mktemp('frames')
    config = folder / 'detector.py'
    config.write_text(f'''
_base_ = '{ROOT}/configs/linear_ff_causal_tiny_synthetic.py'
model = dict(
    backbone=dict(
        encoder=dict(embed_dims=16, num_heads=2),
        num_anticipation_tokens=2),
    cls_head=dict(num_classes={len(CLASSES)}, in_channels=16))
test_dataloader = dict(dataset=dict(
    frame_rate=12., metainfo=dict(classes={CLASSES})))
online = dict(events=dict(on=.3, off=.2, min_duration=.25))
''')
    torch.manual_seed(0)
    model = mmvidattn.get_model(config)
    for name, x in model.named_parameters():
        if 'log_factor' not in name:
            torch.nn.init.normal_(x, x.mean().item(), .3)
    torch.save(dict(state_dict=model.state_dict()), folder / 'detector.pth')
    return str(config), str(folder / 'detector.pth')


KINDS = dict(files=FeatureStreamModel, frame_files=LiveVideoModel,
             clip_files=LiveClipModel)


@pytest.fixture(scope='module', params=KINDS)
def live_model(request):
    """Model of each kind."""
    return KINDS[request.param](*request.getfixturevalue(request.param))


def scores_of(detections):
    return np.stack([detection.scores for detection in detections])


def test_long_gap_restarts_the_stream(live_model, monkeypatch):
    # A longer memory does not help.
    monkeypatch.setattr(live_model, 'memory_steps', 10**6, raising=False)
    run, lines = StreamRun(live_model, Script(
        [*range(30), *range(1230, 1260)])), []
    run.log = lines.append
    found = list(run)
    rate = int(run.rate)
    num_steps = 30 * rate // 12
    assert [d.step for d in found] == [
        *range(num_steps), *range(num_steps + 100 * rate,
                                  2 * num_steps + 100 * rate)]
    assert run.missing == 100 * rate
    assert lines == ['script: gap of 100.0 s without frames at 2.50 s']
    # Scores after the gap do not depend on frames before it.
    fresh = list(StreamRun(live_model, Script(range(1230, 1260))))
    np.testing.assert_allclose(
        scores_of(found[num_steps:]), scores_of(fresh), rtol=1e-5, atol=1e-7)


def test_stopped_run_resumes_in_a_video(live_model, clip, tmp_path):
    """Also with the thresholds of the page, and after a cut-off line."""
    name = live_model.classes[-1]
    whole = StreamRun(live_model, clip, tmp_path / 'whole.jsonl')
    options = dict(events_file=tmp_path / 'events.jsonl',
                   state_file=tmp_path / 'state')
    first = StreamRun(live_model, clip, **options)
    for run in whole, first:
        run.event_detector.set_threshold(name, .25)
    want, got = list(whole), list(islice(first, 7))
    with open(tmp_path / 'events.jsonl', 'ab') as file:
        file.write(b'{"id": 9')
    rest = StreamRun(live_model, clip, **options)
    assert rest.event_detector.thresholds()['changed'][name][0] == .25
    assert rest.resumed.startswith('resumes at ')
    got += rest
    assert [d.step for d in got] == [d.step for d in want]
    np.testing.assert_allclose(scores_of(got), scores_of(want), atol=1e-5)
    report = rest.report()
    assert (report['steps'], report['missing']) == (len(want), 0)
    assert (tmp_path / 'events.jsonl').read_bytes() == (
        tmp_path / 'whole.jsonl').read_bytes()


def scores_of_whole(model, images, elapsed=1.):
    """Score images in one pass: [T, 1 + A, K]."""
    frames = torch.from_numpy(np.stack(
        [cv2.resize(image, (32, 32)) for image in images]))
    x = scores_of_images(model, frames.permute(0, 3, 1, 2).float(),
                         np.broadcast_to(elapsed, len(images)).tolist())
    return x.softmax(-1).numpy()


def images_of(clip):
    reader = decord.VideoReader(str(clip))
    return list(reader.get_batch(range(len(reader))).asnumpy())


@pytest.mark.parametrize('frame_rate', [4., 48.])
def test_frames_are_scored_as_in_the_whole_file(frame_files, clip,
                                                frame_rate):
    """Use the middle frame of a step, or age the state between frames."""
    run = OnlineDetector(*frame_files, clip, cfg_options={
        'test_dataloader.dataset.frame_rate': frame_rate})
    images = images_of(clip)
    want = scores_of_whole(
        run.model, images[1::3] if frame_rate == 4 else images,
        max(1., frame_rate / 12))
    got = list(run)
    np.testing.assert_allclose(
        [[d.scores, *d.anticipated] for d in got], want, atol=1e-5)
    assert run.rate == min(frame_rate, 12)
    assert np.ptp(want[:, 0], axis=0).max() > .1


def test_missing_frames_age_the_state(frame_files):
    indices = [*range(10), *range(30, 40)]
    model = LiveVideoModel(*frame_files, cfg_options={
        'test_dataloader.dataset.frame_rate': 48.})
    run = StreamRun(model, Script(indices))
    results = list(run)
    assert [d.step for d in results] == indices
    assert run.missing == 20 and run.session.num_bad_frames == 20
    want, plain = (scores_of_whole(model.model, [*map(noise, indices)], age)
                   for age in ([4] * 10 + [21 * 4] + [4] * 9, 4))
    np.testing.assert_allclose(scores_of(results), want[:, 0], atol=1e-6)
    assert np.abs(results[10].scores - plain[10, 0]).max() > 1e-6


def test_bundle_gives_the_same_detections(frame_files, clip, tmp_path):
    """Also with the last class ignored."""
    config, checkpoint = frame_files
    changed = tmp_path / 'changed.py'
    changed.write_text(f'''
_base_ = {config!r}
ignored = {len(CLASSES) - 1}
model = dict(cls_head=dict(loss_cls=dict(ignore_index=ignored)))
test_dataloader = dict(dataset=dict(ignore_index=ignored))
online = dict(max_gap=3.)
''')
    main(['bundle', str(changed), checkpoint, str(tmp_path / 'model.zip')])
    want = list(OnlineDetector(changed, checkpoint, clip))
    model = LiveVideoModel(tmp_path / 'model.zip', None)
    assert model.ignore == {0, len(CLASSES) - 1}
    assert [*model.classes] == [*CLASSES]
    assert model.online.max_gap == 3
    got = list(StreamRun(model, clip))
    assert len(got) == len(want) == 84
    for a, b in zip(got, want):
        np.testing.assert_allclose(a.scores, b.scores, atol=1e-6)
        assert a.events == b.events
        assert a.scores[-1] == 0
    assert any(a.events for a in got)


@pytest.mark.parametrize('max_gap, cuts', [(2.5, True), (4., False)])
def test_actions_end_before_a_long_gap(frame_files, max_gap, cuts):
    """36 steps of 1/12 s are missing after second 1."""
    frames = [*range(12), *range(48, 60)]
    model = LiveVideoModel(
        *frame_files, events=dict(on=1e-5, off=1e-6, min_duration=.5),
        cfg_options={'online.max_gap': max_gap})
    run = StreamRun(model, Script(frames))
    results = list(run)
    assert run.missing == 36
    # The network restarts after it.
    restarted = scores_of_whole(model.model, [*map(noise, frames[12:])])
    error = np.abs(results[12].scores - restarted[0, 0]).max()
    assert (error < 1e-6) == cuts
    events = [(event.get('end'), event.get('cut'), event['start'])
              for result in results for event in result.events]
    number = len(CLASSES) - 1
    assert events[:number] == [(None, None, 0.)] * number
    assert sorted(events[number:], key=str) == (
        [(1., True, 0.)] * number + [(None, None, 4.)] * number) * cuts


@pytest.mark.parametrize('network', ['TeSTra', 'MiniROAD'])
def test_feature_networks_get_the_features_of_their_steps(
        files, clip, tmp_path, monkeypatch, network):
    """RGB for MiniROAD, and also optical flow for TeSTra."""
    path = tmp_path / 'detector.py'
    # The rates in the config match the extracted features.
    path.write_text(f'''
_base_ = ['{ROOT}/configs/miniroad_tiny_synthetic.py']
model = dict(
    backbone=dict(in_channels=dict(_delete_=True, rgb=96), embed_dims=16),
    cls_head=dict(num_classes={len(CLASSES)}, in_channels=16))
test_dataloader = dict(dataset=dict(metainfo=dict(classes={CLASSES})))
online = dict(
    extractors=dict(rgb=dict(
        config='linear_ff_tiny_motion',
        checkpoint='{files[1].parent}/recognizer.pth', clip_len=2,
        cfg_options={{'model.backbone.num_frames': 2}})))
''')
    torch.manual_seed(0)
    live = FeatureStreamModel(path, None) if network == 'MiniROAD' else (
        FeatureStreamModel(
            files[0], None, extractors=dict(flow=dict(
                config=str(write_tsn(tmp_path / 'flow.py', True)),
                flow='farneback', flow_side=48)),
            cfg_options={'model.backbone.in_channels.flow': 512}))
    rows, push = [], StreamSession.push_many
    monkeypatch.setattr(StreamSession, 'push_many', staticmethod(
        lambda sessions, frames: rows.extend(frames) or push(sessions, frames))
    )
    results, images = list(StreamRun(live, clip)), images_of(clip)
    assert len(results) == len(rows) == 28
    assert results[0].seconds['flow'] > 0
    for name, extractor in live.extractors.items():
        for step in 0, 1, 17:
            torch.testing.assert_close(
                rows[step][name], extractor.features([extractor.clip([
                    images[i] for i in extractor.frame_indices(step, 12, 4)
                ])])[0], atol=1e-4, rtol=1e-4)
    # Contracts show that streams equal the whole video.
    data = live.cfg.test_dataloader.dataset
    logits = StreamSession(live.model, data.long_rate, data.work_rate).push(
        {name: torch.stack([row[name] for row in rows])
         for name in live.extractors})['action']
    got = [[d.scores, *d.anticipated] for d in results]
    np.testing.assert_allclose(got, logits.softmax(-1), atol=1e-5)
    assert np.ptp(got, axis=0).max() > 0


def test_clips_are_scored_as_in_sliding_windows(clip_files, clip):
    run = StreamRun(LiveClipModel(*clip_files), clip)
    results = list(run)
    assert run.rate == 2 and run.classes[0] == 'up'
    assert [(d.step, d.time, len(d.images), d.anticipated.shape)
            for d in results] == [(i, (i + 1) / 2, 6, (0, 8))
                                  for i in range(14)]
    windows = mmvidattn.VideoClassifier(run.model).windows(clip, 2, .5)
    np.testing.assert_allclose(
        scores_of(results[3:]), [window.probabilities for window in windows],
        rtol=1e-5, atol=1e-7)
    assert np.ptp(scores_of(results), axis=0).max() > .1
    # A window encodes one new group and shares all other groups.
    assert run.session.encoder.num_shared > run.session.encoder.num_encoded
    # The first class is not a background.
    assert run.ignore == set() and run.top_actions(np.eye(8)[0], 1) == {
        'up': 1.}
    assert {*run.report()['latency']} == {
        'decode', 'features', 'head', 'total'}


def test_windows_contain_frames_of_dropped_steps(clip_files):
    """Scores after a dropped step match the scores of a recording."""
    options = dict(seconds=1, stride=.25, queue_size=1)
    want = list(OnlineDetector(*clip_files, Script(range(120)), **options))
    run = OnlineDetector(*clip_files, Script([0]), **options).with_source(
        Script(range(120), live=True, wait=.001))
    assert run.session.window_frames == 12 and run.rate == 4
    assert run._reader.queue.size == 1
    got = {}
    for detection in run:
        got[detection.step] = detection.scores
        time.sleep(.03)
    assert run.dropped > 20 and 39 in got
    for step, scores in got.items():
        np.testing.assert_allclose(
            scores, want[step].scores, rtol=1e-5, atol=1e-7)


def test_classes_without_labels_are_numbered(clip_files):
    model = LiveClipModel(clip_files[0], None, cfg_options={
        'test_dataloader.dataset.metainfo.classes': '',
        'train_dataloader.dataset.metainfo.classes': ''})
    assert model.classes == [f'class {i}' for i in range(8)]
    assert model.ignore == set()
    assert model.new_event_detector().names == model.classes
