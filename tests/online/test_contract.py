# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of every online network that streams support.

A network is built from its config ``*_tiny_synthetic``, with short memories.
"""
import copy
import io
import random
import warnings

import pytest
import torch
from helpers import relative
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from online.networks import (
    NeverWait,
    clip_of,
    frame_of,
    images_like,
    scores_of_images,
    small_detector,
    video_of,
    windows_of,
)

from mmvidattn.online import StreamSession, dense_features
from mmvidattn.online.stream_session import STEPS

# Longer than all memories.
LENGTH = 36
DROPOUT = 'p', 'drop_rate', 'dropout'
OPTIONS = {'MiniROAD': dict(num_layers=2),
           'MAT': dict(num_encoder_layers=1, num_future_layers=1)}
# Further variants of a network, by options of the backbone.
VARIANTS = {
    'OnlineVideoEncoder-softmax': {'encoder.attention': dict(
        _delete_=True, type='SoftmaxAttention', window_frames=4)},
    # The window contains all earlier samples.
    'TeSTra-smoothing': {'decay': .8, 'long_memory_length': LENGTH // 2},
    'TeSTra-lstr': {'long_memory_pos_embed': True, 'fusion': 'none'},
    'TeSTra-fused-long': {'fusion': 'long'},
}
# Samples of the long memory and of the work memory.
RATES = {'TeSTra-lstr': (3, 2)}


def build(name):
    model = small_detector(
        name.partition('-')[0], **{**OPTIONS, **VARIANTS}.get(name, {}))
    model.name, model.rates = name, RATES.get(name, (2, 1))
    return model


def open_session(model):
    return StreamSession(model, *model.rates, kernel=(
        'smoothing' if model.name == 'TeSTra-smoothing' else None))


@pytest.fixture(scope='module', params=[
    *(kind.__name__ for kind in STEPS), *VARIANTS])
def model(request):
    return build(request.param)


@pytest.fixture(scope='module')
def videos(model):
    """Frames of four streams, [T, *] each."""
    if 'frames' in model.backbone.in_channels:
        return [dict(frames=images_like(LENGTH, i)) for i in range(4)]
    return [video_of(model, LENGTH, seed=i) for i in range(4)]


def full_windows(model):
    """Return the full windows, their masks, and the first one's last frame."""
    first = (model.backbone.work_memory_length - 1) * model.rates[1]
    frames, mask, _ = windows_of(
        model.backbone, range(first, LENGTH), *model.rates,
        open_session(model).step.stretch_long_memory)
    return frames, mask, first


@torch.no_grad()
def whole(model, video):
    """Return the first scored frame, and the scores of an entire video."""
    if 'frames' in video:
        return 0, scores_of_images(model, video['frames'])
    frames, mask, first = full_windows(model)
    long, work = frames.tensor_split([model.backbone.long_memory_length], 1)
    x = dense_features(model.backbone, video, long, work, mask, batch_size=7)
    return first, model.cls_head(x)['action']


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return function(*args)


def test_every_registered_network_has_a_contract():
    found = {kind for kind in MODELS.module_dict.values()
             if kind.__module__.startswith('mmvidattn.online')
             and issubclass(kind, BaseModule)}
    assert found == set(STEPS)


@torch.no_grad()
def test_windows_equal_the_whole_video(model, videos):
    want, video = whole(model, videos[0])[1], videos[0]
    if 'frames' in video:
        x, state, parts = clip_of(model, video['frames']), None, []
        for chunk in x.split([1, 15, 20], dim=2):
            y, state = model.backbone.forward_causal(dict(frames=chunk), state)
            parts.append(y)
        got = model.cls_head(torch.cat(parts, dim=1)[0])['action']
        assert relative(got, want[:, 0]) < 1e-6
        # A clip ends with the anticipated steps.
        got = model(dict(frames=x))['action'][0, LENGTH - 1:]
        assert relative(got, want[-1]) < 1e-6
        return
    L = model.backbone.work_memory_length
    if model.name == 'MiniROAD':
        # In a test, a window starts with the state of the video before.
        got = model(frame_of(video, None))['action'][0, L - 1:, None]
    else:
        frames, mask, _ = full_windows(model)
        got = model({**frame_of(video, frames), 'padding_mask': mask})[
            'action'][:, L - 1:]
    assert relative(got, want) < 1e-9


def test_stream_equals_the_whole_video(model, videos):
    """However many frames are pushed at once."""
    first, want = whole(model, videos[0])
    got = open_session(model).push(videos[0])['action']
    assert relative(got[first:], want) < 1e-6
    session, times = open_session(model), (0, 4, 6, 7, 10)
    parts = [session.push(frame_of(videos[0], slice(*each)))['action']
             for each in zip(times, times[1:])]
    assert torch.equal(torch.cat(parts), got[:10])
    # The scores depend on the video.
    assert relative(whole(model, videos[1])[1], want) > 1e-3
    assert session.num_steps == 10 and not session.num_bad_frames


def test_a_killed_stream_resumes_with_the_same_bits(model, videos):
    """In another model with the same weights; and without dropout."""
    session, file = open_session(model), io.BytesIO()
    session.push(frame_of(videos[0], slice(13)))
    torch.save([model.state_dict(), session.state_dict()], file)
    file.seek(0)
    weights, state = torch.load(file, weights_only=True)
    other = build(model.name)
    other.load_state_dict(weights)
    for module in other.modules():
        for name in DROPOUT:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, .9)
    resumed = open_session(other)
    resumed.load_state_dict(state)
    rest = frame_of(videos[0], slice(13, 22))
    assert torch.equal(resumed.push(rest)['action'],
                       session.push(rest)['action'])


def test_autocast_keeps_the_state_in_float32(model, videos):
    low, video = copy.deepcopy(model).float(), frame_of(videos[0], slice(12))
    want = open_session(model).push(video)['action']
    usual = open_session(low).state_dict()
    with torch.autocast('cpu', torch.bfloat16):
        session = open_session(low)
        # A state of float32 continues in bfloat16, and the other way round.
        session.load_state_dict(usual)
        got = session.push({n: x.float() for n, x in video.items()})['action']
        quietly(session.skip, 2)
    assert 1e-4 < relative(got, want) < .05
    other = open_session(low)
    other.load_state_dict(session.state_dict())
    assert other.num_steps == 14


def test_streams_join_leave_and_reset(model, videos):
    """Random batches of streams of any age equal each stream alone."""
    want = [open_session(model).push(frame_of(video, slice(9)))
            for video in videos]
    sessions = [open_session(model)]
    sessions += [sessions[0].spawn() for _ in videos[1:]]
    rng, resets = random.Random(0), 0
    for turn in range(20):
        # Also all streams in another order.
        some = rng.sample(range(4), rng.randint(1, 4) if turn > 3 else 4)
        one = sessions[some[0]]
        if rng.random() < .1:
            one.reset()
            assert one.num_steps == 0
            resets += 1
        if rng.random() < .2:
            sessions[some[0]] = sessions[0].spawn()
            sessions[some[0]].load_state_dict(one.state_dict())
        some = [i for i in some if sessions[i].num_steps < 9]
        ages = [sessions[i].num_steps for i in some]
        found = StreamSession.push_many(
            [sessions[i] for i in some],
            [frame_of(videos[i], t) for i, t in zip(some, ages)])
        for i, t, result in zip(some, ages, found):
            assert result.keys() == want[i].keys()
            assert relative(result['action'], want[i]['action'][t]) < 1e-9
    assert resets and max(x.num_steps for x in sessions) == 9
    # Equal batches are not copied, and a saved state has one stream only.
    places = []
    for _ in range(2):
        StreamSession.push_many(sessions, [
            frame_of(video, 10) for video in videos])
        places.append([x.data_ptr() for x in sessions[2]._state.values()])
    assert places[0] == places[1]
    assert all(x.untyped_storage().nbytes() == x.nbytes
               for x in sessions[2].state_dict()['state'].values())


def copied(session):
    other = session.spawn()
    other.load_state_dict(session.state_dict())
    return other


@pytest.mark.filterwarnings('error:frame')
@pytest.mark.parametrize('age', [0, 9])
def test_skips_and_bad_frames_equal_missing_frames(model, videos, age):
    """For any number of frames, even more than the memories hold."""
    start, number = open_session(model), 0
    if age:
        start.push(frame_of(videos[0], slice(age)))
    missing = copied(start)
    bad = {name: x.clone() for name, x in frame_of(videos[1], 0).items()}
    next(iter(bad.values())).view(-1)[3] = torch.nan
    huge = {name: torch.full_like(x, torch.finfo(x.dtype).max)
            for name, x in bad.items()}
    for gap in (0, 1, 7, 40) if age else (2, ):
        skipped = copied(start)
        skipped.skip(gap)
        while number < gap:
            frame = (None, bad, huge)[number % 3]
            assert quietly(missing.push, frame)['bad_frame']
            number += 1
        other = copied(missing)
        assert skipped.num_steps == other.num_steps == age + gap
        assert skipped.num_bad_frames == other.num_bad_frames == gap
        got, want = (session.push(frame_of(videos[0], slice(20, 23)))['action']
                     for session in (skipped, other))
        assert relative(got, want) < 1e-6, gap


@torch.no_grad()
def test_steps_run_the_same_kernels_on_the_same_memory(model):
    """Exported programs and CUDA graphs rely on it."""
    step = open_session(model).step
    state, kernels = step.initial_state(3), []
    assert all(len(x) == 3 and len(x.unique()) == 1 for x in state.values())
    before = {name: (x.data_ptr(), x.shape) for name, x in state.items()}
    gen = torch.Generator().manual_seed(0)

    class Record(NeverWait):

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = super().__torch_dispatch__(func, types, args, kwargs)
            kernels[-1].append((func, getattr(out, 'shape', None)))
            return out

    for t in range(3):
        frames = step.random_frames(3, gen)
        if t == 2:
            next(iter(frames.values()))[1] = torch.nan
        kernels.append([])
        with Record():
            step(frames, state)
        state['count'][1] += 5 * (t == 1)
    assert all(each == kernels[0] for each in kernels)
    assert {name: (x.data_ptr(), x.shape)
            for name, x in state.items()} == before
    assert state['count'].tolist() == [3, 8, 3]
    assert state['num_bad'].tolist() == [0, 1, 0]


def test_every_parameter_gets_a_gradient(model, videos):
    model.train()
    backbone = model.backbone
    length = backbone.long_memory_length + (backbone.work_memory_length or 9)
    if 'frames' in videos[0]:
        inputs = dict(frames=clip_of(model, videos[0]['frames'][:length]))
    else:
        inputs = {name: x[None, :length] for name, x in videos[0].items()}
    # Some networks have features of several rounds.
    found = getattr(backbone, 'stages', backbone)(inputs)
    parts = [found] if torch.is_tensor(found) else sum(found, [])
    try:
        sum(model.cls_head(x)['action'].square().sum()
            for x in parts).backward()
    finally:
        model.eval()
    still = {name for name, p in model.named_parameters()
             if p.grad is None or not 0 < p.grad.abs().sum() < float('inf')}
    model.zero_grad()
    assert not still


def test_rejects_frames_sessions_and_states(model, videos):
    session, frame = open_session(model), frame_of(videos[0], 0)
    state = session.state_dict()
    damaged = dict(state['state'], count=torch.zeros(1))
    other = next(iter(frame.values()))
    push, push_many = session.push, StreamSession.push_many
    for function, arguments, message in (
            *((push, [{**frame, name: x[..., 1:]}], name)
              for name, x in frame.items()),
            *((push, [{**frame, name: x[None, None]}], name)
              for name, x in frame.items()),
            (push, [{name: x[None][:0] for name, x in frame.items()}],
             'T >= 1'),
            (push, [dict(other=other)], 'must have .* got other'),
            (push_many, [[session] * 2, [frame] * 2], 'got one twice'),
            (push_many, [[session, open_session(model)], [frame] * 2],
             'session.spawn()'),
            (push_many, [[session], [frame] * 2], 'got 2 for 1'),
            (push_many, [[session], [frame_of(videos[0], slice(2))]],
             'must be one frame'),
            (session.skip, [-1], 'number must be a non-negative integer'),
            (session.load_state_dict, [dict(state, version=2)],
             'of version 1, got 2'),
            (session.load_state_dict, [dict(state, state=damaged)],
             'the state of state_dict must be')):
        with pytest.raises(ValueError, match=message):
            function(*arguments)
    assert push_many([], []) == []
    assert session.num_steps == 0
