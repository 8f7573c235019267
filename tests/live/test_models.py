# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection by models of frames and of clips, MiniROAD and MAT."""
import time

import cv2
import decord
import numpy as np
import pytest
import torch
from live_fixtures import CLASSES, ROOT, Script

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

SIDE = 32


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


@pytest.fixture(scope='module')
def model(frame_files):
    return LiveVideoModel(*frame_files)


@torch.no_grad()
def scores_of(model, images, elapsed=1.):
    """Score images in one pass: [T, 1 + A, K]."""
    frames = np.stack([cv2.resize(image, (SIDE, SIDE)) for image in images])
    frames = torch.from_numpy(frames).permute(3, 0, 1, 2)[None]
    frames = model.data_preprocessor.normalize(frames)
    elapsed = torch.full((1, len(images)), elapsed)
    backbone = model.backbone
    x, _ = backbone.forward_causal(dict(frames=frames, elapsed=elapsed))
    x = torch.cat([x[0][:, None], backbone.anticipate(x[0])], dim=1)
    return model.cls_head(x)['action'].softmax(-1).numpy()


def images_of(clip):
    reader = decord.VideoReader(str(clip))
    return list(reader.get_batch(range(len(reader))).asnumpy())


def test_scores_match_the_whole_file(model, clip):
    run = StreamRun(model, clip)
    got = list(run)
    want = scores_of(model.model, images_of(clip))
    assert run.rate == 12 and len(got) == len(want) == 84
    np.testing.assert_allclose(
        [[d.scores, *d.anticipated] for d in got], want, atol=1e-5)
    assert np.ptp(want[:, 0], axis=0).max() > .1


@pytest.mark.parametrize('frame_rate', [4., 48.])
def test_other_frame_rates(frame_files, clip, frame_rate):
    """Use the middle frame of a step, or age the state between frames."""
    run = OnlineDetector(*frame_files, clip, cfg_options={
        'test_dataloader.dataset.frame_rate': frame_rate})
    images = images_of(clip)
    want = scores_of(run.model, images[1::3] if frame_rate == 4 else images,
                     1. if frame_rate == 4 else 4.)
    np.testing.assert_allclose(
        [d.scores for d in run], want[:, 0], atol=1e-5)
    assert run.rate == min(frame_rate, 12)


def test_missing_frames_age_the_state(model):
    script = Script([*range(10), *range(30, 40)])
    run = StreamRun(model, script)
    results = list(run)
    assert [d.step for d in results] == [*range(10), *range(30, 40)]
    assert run.missing == 20 and run.session.num_bad_frames == 20
    images = [frame.image for frame in Script([*range(10), *range(30, 40)])]
    plain = scores_of(model.model, images)
    assert np.abs(results[9].scores - plain[9, 0]).max() < 1e-5
    assert np.abs(results[10].scores - plain[10, 0]).max() > 1e-6


@pytest.fixture(scope='module')
def bundle(frame_files, tmp_path_factory):
    """Bundle of the detector, with the last class ignored."""
    folder = tmp_path_factory.mktemp('bundle')
    config, checkpoint = frame_files
    changed = folder / 'changed.py'
    changed.write_text(f'''
_base_ = {config!r}
ignored = {len(CLASSES) - 1}
model = dict(cls_head=dict(loss_cls=dict(ignore_index=ignored)))
test_dataloader = dict(dataset=dict(ignore_index=ignored))
online = dict(max_gap=3.)
''')
    main(['bundle', str(changed), checkpoint,
                        str(folder / 'detector.zip')])
    return str(changed), checkpoint, str(folder / 'detector.zip')


def test_bundle_gives_the_same_detections(bundle, clip):
    config, checkpoint, path = bundle
    want = list(OnlineDetector(config, checkpoint, clip))
    model = LiveVideoModel(path, None)
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
    images = [frame.image for frame in Script(frames)]
    restarted = scores_of(model.model, images[12:])
    error = np.abs(results[12].scores - restarted[0, 0]).max()
    assert (error < 1e-6) == cuts
    events = [event for result in results for event in result.events]
    number = len(CLASSES) - 1
    starts = [event['start'] for event in events if event['event'] == 'start']
    ends = [event for event in events if event['event'] == 'end']
    if not cuts:
        assert starts == [0.] * number and not ends
        return
    assert starts == [0.] * number + [4.] * number
    assert len(ends) == number
    assert all(event['end'] == 1 and event['cut'] for event in ends)


@pytest.mark.parametrize('name', ['miniroad', 'mat'])
def test_feature_networks_match_the_whole_video(
        name, files, clip, tmp_path, monkeypatch):
    path = tmp_path / 'detector.py'
    # The rates in the config match the extracted features.
    path.write_text(f'''
_base_ = ['{ROOT}/configs/{name}_tiny_synthetic.py']
model = dict(
    backbone=dict(in_channels=dict(_delete_=True, rgb=96), embed_dims=16),
    cls_head=dict(num_classes={len(CLASSES)}, in_channels=16))
test_dataloader = dict(dataset=dict(metainfo=dict(classes={CLASSES})))
online = dict(
    extractors=dict(rgb=dict(
        config='linear_ff_tiny_motion',
        checkpoint='{files[1].parent}/recognizer.pth',
        cfg_options={{'model.backbone.num_layers': 1}})))
''')
    torch.manual_seed(0)
    live, rows, push = FeatureStreamModel(path, None), [], (
        StreamSession.push_many)
    monkeypatch.setattr(StreamSession, 'push_many', staticmethod(
        lambda sessions, frames: rows.extend(frames) or push(sessions, frames))
    )
    got = [[d.scores, *d.anticipated] for d in StreamRun(live, clip)]
    assert len(got) == len(rows) == 28
    # Contracts show that streams equal the whole video.
    data = live.cfg.test_dataloader.dataset
    logits = StreamSession(
        live.model, data.long_rate, data.work_rate).push(
            dict(rgb=torch.stack([row['rgb'] for row in rows])))['action']
    np.testing.assert_allclose(got, logits.softmax(-1), atol=1e-5)


@pytest.fixture(scope='module')
def clip_model(clip_files):
    return LiveClipModel(*clip_files)


def test_scores_match_sliding_windows(clip_model, clip):
    run = StreamRun(clip_model, clip)
    results = list(run)
    assert run.rate == 2 and run.classes[0] == 'up'
    assert [d.step for d in results] == list(range(14))
    assert [d.time for d in results] == [(i + 1) / 2 for i in range(14)]
    assert {len(d.images) for d in results} == {6}
    assert all(d.anticipated.shape == (0, 8) for d in results)
    classifier = mmvidattn.VideoClassifier(run.model)
    windows = list(classifier.windows(clip, 2, .5))
    for detection, window in zip(results[3:], windows):
        np.testing.assert_allclose(
            detection.scores, window.probabilities, rtol=1e-5, atol=1e-7)
    assert np.ptp([d.scores for d in results], axis=0).max() > .1
    # A window encodes one new group and shares all other groups.
    assert run.session.encoder.num_shared > run.session.encoder.num_encoded
    # The first class is not a background.
    assert run.ignore == set() and run.top_actions(np.eye(8)[0], 1) == {
        'up': 1.}
    latency = run.report()['latency']
    assert {'features', 'head', 'total', 'lag'} <= set(latency)
    assert 'flow' not in latency


def test_windows_contain_frames_of_dropped_steps(clip_model):
    """Scores after a dropped step match the scores of a recording."""
    want = {d.step: d.scores
            for d in StreamRun(clip_model, Script(range(120)))}
    run = StreamRun(clip_model, Script(range(120), live=True, wait=.001),
                    queue_size=1)
    got = {}
    for detection in run:
        got[detection.step] = detection.scores
        time.sleep(.03)
    assert run.dropped > 0 and 19 in got
    for step, scores in got.items():
        np.testing.assert_allclose(scores, want[step], rtol=1e-5, atol=1e-7)


def test_long_gap_restarts_the_session(clip_model):
    run = StreamRun(clip_model, Script([*range(30), *range(1230, 1260)]))
    results = list(run)
    assert [d.step for d in results] == [*range(5), *range(205, 210)]
    # Scores after the gap do not depend on frames before it.
    fresh = list(StreamRun(clip_model, Script(range(1230, 1260))))
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
    assert other._reader.queue.size == 7
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
