# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re
from functools import cache

import numpy as np
import pytest
import torch
from live_fixtures import make_images
from torch import nn

import mmvidattn

FPS = 12
WINDOW = 16
# Sample frames 0, 2, ... 14 of a window.
PIPELINE = [
    dict(type='DecordInit'),
    dict(type='SampleFrames', clip_len=8, frame_interval=2, num_clips=1,
         test_mode=True),
    dict(type='DecordDecode'),
    dict(type='Resize', scale=(-1, 64)),
    dict(type='CenterCrop', crop_size=64),
    dict(type='FormatShape', input_format='NCTHW'),
    dict(type='PackActionInputs')]
XVIT = 'xvit_tiny_motion'
FACT = 'vivit_tiny_fact_encoder_motion'
# It mixes all frames from the start.
MIXED = 'linear_ff_tiny_motion'


@cache
def model_of(name):
    """Build a model with PIPELINE and outputs that vary."""
    torch.manual_seed(0)
    model = mmvidattn.get_model(name)
    # Some weights are zero, such as temporal position embeddings.
    for p in model.parameters():
        nn.init.normal_(p, p.mean().item(), .1)
    model.cfg.test_dataloader.dataset.pipeline = PIPELINE
    return model


@pytest.fixture
def with_steps(monkeypatch):
    """Return a model with a changed test pipeline."""
    def get(name, change):
        model = model_of(name)
        monkeypatch.setitem(model.cfg.test_dataloader.dataset, 'pipeline',
                            [change(dict(step)) for step in PIPELINE])
        return model

    return get


@pytest.fixture(scope='module')
def frames():
    return np.array(make_images(34))


def session_of(name, **options):
    """Make a session with options in frames."""
    return mmvidattn.SlidingClassifier(
        model_of(name) if isinstance(name, str) else name, fps=FPS,
        **{key: value / FPS for key, value in options.items()})


def push(session, frames):
    """Return the scores after each stride."""
    got = [session.step(frame) for frame in frames]
    ends = range(session.stride_frames, len(frames) + 1, session.stride_frames)
    assert [i + 1 for i, x in enumerate(got) if x is not None] == list(ends)
    return [x for x in got if x is not None]


def naive(model, frames, stride):
    """Return the scores of a VideoClassifier for each window."""
    classifier = mmvidattn.VideoClassifier(model)
    return [classifier(frames[max(0, stop - WINDOW):stop], fps=FPS
                       ).probabilities
            for stop in range(stride, len(frames) + 1, stride)]


def check_same(found, expected):
    found, expected = torch.stack(found), torch.stack(expected)
    assert ((found - expected).norm(dim=1) / expected.norm(dim=1)).max() < 1e-5
    # The outputs must vary for a meaningful comparison.
    assert expected.std(dim=0).max() > 1e-3


@pytest.mark.parametrize('name, stride', [
    *((name, 4) for name in (
        FACT, XVIT, MIXED, 'vivit_tiny_motion', 'laps_tiny_motion',
        'dualformer_tiny_motion')),
    (FACT, 1), (XVIT, 5)])
def test_matches_naive(frames, name, stride):
    session = session_of(name, seconds=WINDOW, stride=stride)
    check_same(push(session, frames), naive(session.model, frames, stride))


@pytest.mark.parametrize('name, stride, shared', [
    # The tubelets are frames 0 and 2, 4 and 6, ...
    (FACT, 4, 3 / 4),
    # Tubelets repeat after 12 frames.
    (FACT, 3, 1 / 4),
    (FACT, 5, 0),
    (XVIT, 2, 7 / 8)])
def test_shared_groups_are_encoded_once(frames, name, stride, shared):
    session = session_of(name, stride=stride)
    assert session.window_frames == WINDOW
    groups = 8 if name == XVIT else 4
    assert f'encodes {groups - shared * groups:.0f} of the {groups} ' in (
        session.describe())
    for i, frame in enumerate(frames):
        before = session.encoder.num_encoded, session.encoder.num_shared
        scores = session.step(frame)
        # By now, all groups that could be shared have occurred.
        if scores is not None and i >= WINDOW + 12:
            new = session.encoder.num_encoded - before[0]
            old = session.encoder.num_shared - before[1]
            assert old / (new + old) == shared
        # The groups of a window may start at 4 different frames.
        assert len(session.encoder) <= 4 * 8
        assert len(session._frames) <= WINDOW
        # An encoding must not keep the memory of its batch.
        assert all(x.untyped_storage().nbytes() == x.nbytes
                   for x in session.encoder._encodings.values())


def test_replaces_missing_frames(frames):
    """Replace a missing frame by the previous one, or by the first one."""
    session = session_of(FACT)
    missing = {0, 1, 9, 10, 15, 16, 17}
    got = [session.step(None if i in missing else frame)
           for i, frame in enumerate(frames)]
    classifier = mmvidattn.VideoClassifier(session.model)
    for stop in range(4, len(frames), 4):
        seen = []
        for i in range(max(0, stop - WINDOW), stop):
            if i not in missing:
                seen += [i] * (1 + i - max(0, stop - WINDOW) - len(seen))
            elif seen:
                seen.append(seen[-1])
        expected = classifier(frames[seen], fps=FPS).probabilities
        torch.testing.assert_close(got[stop - 1], expected, rtol=1e-5,
                                   atol=1e-7)
    session.reset()
    assert [session.step(None) for _ in range(4)] == [None] * 4


def test_uses_one_view_of_a_config_with_several(with_steps, frames):
    # Without shared groups, the windows do not overlap.
    assert session_of(MIXED).stride_frames == WINDOW
    wide = np.concatenate([frames, frames[:, ::-1]], axis=2)
    expected = naive(model_of(MIXED), wide, 8)
    model = with_steps(MIXED, lambda step: (
        dict(step, num_clips=5) if 'num_clips' in step else
        dict(type='ThreeCrop', crop_size=64) if 'crop_size' in step else step))
    check_same(push(session_of(model, stride=8), wide), expected)


def test_sessions_only_share_the_model(frames):
    one = session_of(FACT)
    expected = push(one, frames)
    one.reset()
    other = one.spawn()
    assert other.model is one.model
    # Alternate between two streams.
    got = [(one.step(a), other.step(b)) for a, b in zip(frames, frames[::-1])]
    check_same([a for a, _ in got if a is not None], expected)
    assert not torch.allclose(got[-3][1], got[-3][0], atol=1e-3)
    faster = one.spawn(2 * FPS)
    assert (faster.fps, faster.window_frames) == (2 * FPS, WINDOW)
    assert one.time == len(frames) / FPS and one.rate == FPS / 4


def test_span_respects_target_fps_of_pipeline(with_steps):
    model = with_steps(MIXED, lambda step: (
        dict(type='SlowFastSampleFrames', clip_len=8, frame_interval=4,
             target_fps=30, test_mode=True) if 'clip_len' in step else step))
    assert mmvidattn.SlidingClassifier(model, fps=15).window_frames == 16


@pytest.mark.parametrize('name, kind, step, error', [
    (MIXED, 'SampleFrames',
     dict(type='SampleFrames', clip_len=8), 'test_mode=True in SampleFr'),
    (MIXED, 'CenterCrop', dict(type='Flip'), 'got Flip'),
    (MIXED, 'FormatShape',
     dict(type='FormatShape', input_format='NCHW'), "got 'NCHW'"),
    (XVIT, 'SampleFrames', dict(PIPELINE[1], clip_len=6),
     'num_frames=8, got clips of 6')])
def test_rejects_invalid_pipelines(with_steps, name, kind, step, error):
    model = with_steps(name, lambda old: step if old['type'] == kind else old)
    with pytest.raises(ValueError, match=error):
        session_of(model)


def test_rejects_invalid_frames(frames):
    session = session_of(MIXED)
    with pytest.raises(ValueError, match=r'got float32 \[64, 64, 3\]'):
        session.step(frames[0].astype(np.float32))
    for shape in (9, 3), (1, 9, 9, 3), (9, 9, 4), (0, 9, 3):
        with pytest.raises(ValueError, match=re.escape(f'uint8 {[*shape]}')):
            session.add(5, np.zeros(shape, np.uint8))
    session.add(5, frames[0])
    with pytest.raises(ValueError, match='frame 5 came after frame 5'):
        session.add(5, frames[0])
