# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Sessions of MiniROAD, the causal transformer and MAT."""
import io
import random
import warnings

import pytest
import torch
from helpers import relative
from online.rivals import BACKBONES, build_rival, random_rival, video_of

from mmvidattn.online import StreamSession, make_stream_step


@pytest.fixture(params=BACKBONES)
def model(request):
    fewer = dict(num_encoder_layers=1, num_layers=1, num_future_layers=1)
    return random_rival(
        request.param, **(fewer if request.param == 'mat' else {}))


def frame_of(video, t):
    return {name: x[t] for name, x in video.items()}


def test_sessions_of_all_ages_share_a_step(model):
    videos = [video_of(model, 20, seed=i) for i in range(4)]
    alone = [StreamSession(model).push(v)['action'] for v in videos]
    sessions = [StreamSession(model)]
    sessions += [sessions[0].spawn() for _ in videos[1:]]
    rng = random.Random(0)
    for _ in range(36):
        some = rng.sample(range(4), rng.randint(1, 4))
        if rng.random() < 0.1:
            sessions[some[0]].reset()
        some = [i for i in some if sessions[i].num_steps < 20]
        ages = [sessions[i].num_steps for i in some]
        out = StreamSession.push_many(
            [sessions[i] for i in some],
            [frame_of(videos[i], t) for i, t in zip(some, ages)])
        for i, t, result in zip(some, ages, out):
            assert relative(result['action'], alone[i][t]) < 1e-9


@pytest.mark.parametrize('before', [0, 9])
def test_missing_frames_are_the_last_good_one(model, before):
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


@pytest.mark.parametrize('name', BACKBONES)
def test_a_long_gap_costs_no_more_than_what_it_changes(name):
    torch.manual_seed(0)
    model = build_rival(name).eval()
    session, calls = StreamSession(model), []
    session.push(frame_of(video_of(model, dtype=torch.float32), 0))
    advance = session.step.advance
    session.step.advance = lambda *args: (calls.append(0), advance(*args))
    with pytest.warns(UserWarning, match='frames 1 to 1000000'):
        session.skip(10**6)
    assert session.num_steps == 10**6 + 1 and len(calls) < 2000


def test_goes_on_from_a_saved_state_of_one_size(model):
    video = video_of(model)
    session, other = StreamSession(model), StreamSession(model)
    size = session.num_bytes
    want = session.push(video)['action']
    assert session.num_bytes == size
    other.push({name: x[:17] for name, x in video.items()})
    file = io.BytesIO()
    torch.save(other.state_dict(), file)
    file.seek(0)
    third = StreamSession(model)
    third.load_state_dict(torch.load(file, weights_only=True))
    got = third.push({name: x[17:] for name, x in video.items()})['action']
    assert torch.equal(got, want[17:])


def test_a_new_state(model):
    step = type(make_stream_step(model))(
        model=model, long_memory_sample_rate=3, work_memory_sample_rate=2,
        kernel='window')
    state = step.initial_state(5)
    assert not any(x.requires_grad for x in state.values())
    assert all(len(x) == 5 for x in state.values())
    if 'long' in state:
        # From the oldest of 5 samples, 2 apart, 12 more, 3 apart.
        assert state['work'].shape[1] == 9
        assert state['long'].shape[1] == 9 + 36


@pytest.mark.slow
def test_the_step_can_be_exported(model):
    step = make_stream_step(model.float())
    state = step.initial_state()
    frame = frame_of(video_of(model, dtype=torch.float32), slice(0, 1))
    with torch.no_grad():
        program = torch.export.export(step, (frame, state))
        want = StreamSession(model).push(
            {name: x[0] for name, x in frame.items()})['action']
        scores, _ = program.module()(frame, step.initial_state())
    assert relative(scores['action'][0], want) < 1e-5
