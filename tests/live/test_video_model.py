# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection by one causal network, from pixels to events."""
import json

import cv2
import decord
import numpy as np
import pytest
import torch
from live_fixtures import CLASSES, ROOT, Script

import mmvidattn
from mmvidattn.commands import main
from mmvidattn.live import (
    EventDetector,
    LiveVideoModel,
    OnlineDetector,
    StreamRun,
)

SIDE = 32


@pytest.fixture(scope='module')
def files(tmp_path_factory):
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
def model(files):
    return LiveVideoModel(*files)


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


def test_scores_and_events_match_the_whole_file(model, clip, tmp_path):
    run = StreamRun(model, clip, tmp_path / 'events.jsonl')
    got = list(run)
    want = scores_of(model.model, images_of(clip))
    assert run.rate == 12 and len(got) == len(want) == 84
    np.testing.assert_allclose(
        [[d.scores, *d.anticipated] for d in got], want, atol=1e-5)
    assert np.ptp(want[:, 0], axis=0).max() > .1
    detector = EventDetector(
        run.classes, {0}, on=.3, off=.2, min_duration=.25)
    expected = []
    for i, scores in enumerate(want[:, 0]):
        expected += detector.update(i / 12, (i + 1) / 12, scores)
    expected += detector.finish(7.)
    assert expected
    lines = (tmp_path / 'events.jsonl').read_text().splitlines()
    for line, event in zip(lines, expected, strict=True):
        assert json.loads(line) == pytest.approx(event, abs=1e-5)


@pytest.mark.parametrize('frame_rate', [4., 48.])
def test_other_frame_rates(files, clip, frame_rate):
    """Use the middle frame of a step, or age the state between frames."""
    run = OnlineDetector(*files, clip, cfg_options={
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
def bundle(files, tmp_path_factory):
    """Bundle of the detector, with the last class ignored."""
    folder = tmp_path_factory.mktemp('bundle')
    config, checkpoint = files
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
def test_actions_end_before_a_long_gap(files, max_gap, cuts):
    """36 steps of 1/12 s are missing after second 1."""
    frames = [*range(12), *range(48, 60)]
    model = LiveVideoModel(
        *files, events=dict(on=1e-5, off=1e-6, min_duration=.5),
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
