# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sessions of MiniROAD and MAT."""
import warnings

import pytest
import torch
from helpers import relative
from online.networks import (
    BACKBONES,
    build_detector,
    frame_of,
    random_detector,
    video_of,
)

from mmvidattn.online import StreamSession, make_stream_step


def small_detector(name):
    fewer = dict(num_encoder_layers=1, num_layers=1, num_future_layers=1)
    return random_detector(name, **(fewer if name == 'mat' else {}))


@pytest.fixture(params=BACKBONES)
def model(request):
    return small_detector(request.param)


@pytest.mark.parametrize('before', [0, 9])
def test_last_good_frame_replaces_missing_frames(model, before):
    video = video_of(model)
    good = {name: torch.cat([0 * x[:1], x]) for name, x in video.items()}
    skipped, pushed, repeated = (StreamSession(model) for _ in range(3))
    for session in skipped, pushed, repeated:
        for t in range(before):
            session.push(frame_of(video, t))
    with warnings.catch_warnings(record=True):
        warnings.simplefilter('always')
        skipped.skip(16)
        for _ in range(16):
            result = pushed.push(None)
    assert result['bad_frame']
    for _ in range(16):
        repeated.push(frame_of(good, before))
    assert skipped.num_bad_frames == pushed.num_bad_frames == 16
    next_frame = frame_of(video, 9)
    want = repeated.push(next_frame)['action']
    assert relative(pushed.push(next_frame)['action'], want) < 1e-12
    assert relative(skipped.push(next_frame)['action'], want) < 1e-6
    skipped.skip(0)
    assert skipped.num_steps == before + 17


def test_finite_frame_with_infinite_projection_is_bad(model):
    """Check a finite frame whose projection is not finite."""
    video = video_of(model, 8)
    pushed, huge = StreamSession(model), StreamSession(model)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        for t in range(7):
            frame = frame_of(video, t)
            pushed.push(None if t == 4 else frame)
            result = huge.push({
                name: torch.full_like(x, torch.finfo(x.dtype).max)
                for name, x in frame.items()} if t == 4 else frame)
            assert result['bad_frame'] == (t == 4)
    assert huge.num_bad_frames == 1
    frame = frame_of(video, 7)
    assert torch.equal(
        huge.push(frame)['action'], pushed.push(frame)['action'])


def test_skips_equal_missing_frames(model):
    video, pushed, number = video_of(model, 3), StreamSession(model), 0
    for t in [0, 1, 1, 0] * 4:
        pushed.push(frame_of(video, t))
    before = pushed.state_dict()
    for gap in 1, 2, 3, 7, 40:
        skipped, other = pushed.spawn(), pushed.spawn()
        skipped.load_state_dict(before)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            skipped.skip(gap)
            while number < gap:
                pushed.push(None)
                number += 1
        other.load_state_dict(pushed.state_dict())
        got, want = (session.push(video)['action']
                     for session in (skipped, other))
        assert relative(got, want) < 1e-6, gap


@pytest.mark.parametrize('name', BACKBONES)
def test_long_gap_needs_few_updates(name, monkeypatch):
    torch.manual_seed(0)
    model = build_detector(name).eval()
    session, calls = StreamSession(model), []
    session.push(frame_of(video_of(model, dtype=torch.float32), 0))
    update = torch.gru_cell
    monkeypatch.setattr(torch, 'gru_cell',
                        lambda *args: calls.append(0) or update(*args))
    with pytest.warns(UserWarning, match='frames 1 to 1000000'):
        session.skip(10**6)
    assert session.num_steps == 10**6 + 1 and len(calls) < 4000


def test_tensors_of_an_initial_state_are_constant(model):
    """Check equal signatures, on which metadata of exported programs rely."""
    for x in make_stream_step(model).initial_state(2).values():
        assert len(x) == 2 and len(x.unique()) == 1
