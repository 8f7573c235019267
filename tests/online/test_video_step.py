# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams of causal video networks, from pixels to scores."""
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers import relative
from online.networks import images_like, scores_of_images, small_detector

from mmvidattn.online import StreamSession, online_video_encoder

BAD = 'ignore:.*of a stream'


@pytest.fixture(scope='module')
def model():
    return small_detector('OnlineVideoEncoder')


@torch.no_grad()
def test_anticipated_features_are_those_of_the_definition(model):
    backbone = model.backbone
    norm, widen, _, narrow = backbone.anticipation
    features = torch.randn(3, 16, dtype=torch.float64)
    want = torch.stack([torch.stack([
        x + narrow(F.gelu(widen(norm(x + token))))
        for token in backbone.anticipation_tokens]) for x in features])
    torch.testing.assert_close(backbone.anticipate(features), want)


@pytest.mark.filterwarnings(BAD)
def test_dropped_frames_age_the_state_and_repeat_the_scores(model):
    """Missing, broken and skipped frames have the same effect."""
    video = images_like(6)
    want = scores_of_images(model, video, [1, 1, 1, 8.5, 1, 1])
    broken = torch.full_like(video[0], 7.)
    broken[1, 3, 5] = torch.nan
    huge = torch.full_like(video[0], torch.finfo(torch.float64).max)
    for number in 7, 10**6:
        session = StreamSession(model)
        before = session.push(dict(frames=video[:3]))
        if number == 7:
            session.skip(1, elapsed=.5)
            for frame in (None, dict(frames=None, elapsed=2.),
                          dict(frames=broken), dict(frames=huge)):
                result = session.push(frame)
                assert result['bad_frame']
                assert torch.equal(result['action'], before['action'][-1])
            session.skip(2)
        else:
            session.skip(number, elapsed=7.5)
        out = session.push(dict(frames=video[3:]))
        assert session.num_bad_frames == session.num_steps - 6 == number
        assert relative(out['action'], want[3:]) < 1e-6


@pytest.mark.filterwarnings(BAD)
def test_large_batches_are_processed_in_parts(model, monkeypatch):
    monkeypatch.setattr(
        online_video_encoder, 'VALUES_AT_ONCE', 2 * 3 * 32 * 32)
    videos = [images_like(6, seed) for seed in range(5)]
    first = StreamSession(model)
    sessions = [first, *(first.spawn() for _ in range(4))]
    backbone = first.step.model.backbone
    spy = Mock(side_effect=backbone.forward_causal)
    monkeypatch.setattr(backbone, 'forward_causal', spy)
    for t in range(6):
        frames = [dict(frames=video[t]) for video in videos]
        if t == 2:
            # Fails in one part only.
            frames[3] = None
        out = StreamSession.push_many(sessions, frames)
        assert [bool(x['bad_frame']) for x in out] == [
            i == 3 and t == 2 for i in range(5)]
    assert {len(call.args[0]['frames']) for call in spy.mock_calls} == {1, 2}
    monkeypatch.undo()
    for i, (video, result) in enumerate(zip(videos, out)):
        seen = [0, 1, 3, 4, 5] if i == 3 else [*range(6)]
        want = scores_of_images(model, video[seen], np.diff([-1, *seen]))
        assert relative(result['action'], want[-1]) < 1e-6


def test_bfloat16_stays_close_and_keeps_float32_sums(model, monkeypatch):
    monkeypatch.setenv('MMVIDATTN_BFLOAT16', 'force')
    video = images_like(10)
    session = StreamSession(small_detector('OnlineVideoEncoder').bfloat16())
    assert session.step.frame_dtype == torch.float32
    sums = [x for name, x in session.step.initial_state().items()
            if name.endswith('sums')]
    assert sums and all(x.dtype == torch.float32 for x in sums)
    got = session.push(dict(frames=video))['action']
    assert relative(got, scores_of_images(model, video)) < .1


@pytest.mark.slow
def test_step_compiles_as_one_graph():
    video = images_like(6)
    session = StreamSession(small_detector(
        'OnlineVideoEncoder', **{'encoder.num_layers': 1}).float())
    want = session.push(dict(frames=video))['action']
    session.reset()
    session.step.compile(fullgraph=True, backend='aot_eager')
    assert relative(session.push(dict(frames=video))['action'], want) < 1e-5
