# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of every online network that streams support.

A network is built from its config ``*_tiny_synthetic``, with short memories.
"""
import inspect
import io
import random
import warnings

import numpy as np
import pytest
import torch
from helpers import relative
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from online.networks import window_of

import mmvidattn
from mmvidattn.apis.config import load_config
from mmvidattn.online import StreamSession, dense_features, make_stream_step
from mmvidattn.online.stream_session import STEPS

LENGTH = 60
MEMORY = dict(long_memory_length=8, work_memory_length=4, num_groups=2)
DROPOUT = 'p', 'drop_rate', 'dropout'
# Further variants of a network, by config options.
VARIANTS = {
    'OnlineVideoEncoder-softmax': {'model.backbone.encoder.attention': dict(
        _delete_=True, type='SoftmaxAttention', window_frames=4)},
}


def build(name):
    """Build a float64 detector whose weights are all random."""
    network = name.partition('-')[0]
    configs = {load_config(config).model.backbone.type: config
               for config in mmvidattn.list_models('*_tiny_synthetic')}
    known = inspect.signature(MODELS.get(network).__init__).parameters
    torch.manual_seed(0)
    model = mmvidattn.get_model(configs[network], cfg_options={
        **{f'model.backbone.{key}': value for key, value in MEMORY.items()
           if key in known}, **VARIANTS.get(name, {})})
    for key, x in model.named_parameters():
        if 'log_factor' not in key:
            torch.nn.init.normal_(x, 'norm' in key and 'weight' in key, .3)
    model.name = name
    return model.double().eval()


@pytest.fixture(scope='module', params=[
    *(kind.__name__ for kind in STEPS), *VARIANTS])
def model(request):
    return build(request.param)


@pytest.fixture(scope='module')
def videos(model):
    """Frames of four streams, [T, *] each."""
    gen = torch.Generator().manual_seed(0)
    if 'frames' not in model.backbone.in_channels:
        return [{name: torch.randn(LENGTH, width, generator=gen,
                                   dtype=torch.float64)
                 for name, width in model.backbone.in_channels.items()}
                for _ in range(4)]
    return [dict(frames=torch.randint(
        256, (LENGTH, 3, 32, 32), generator=gen).double()) for _ in range(4)]


@torch.no_grad()
def whole(model, video):
    """Return the first scored frame, and the scores of an entire video."""
    backbone = model.backbone
    if 'frames' in video:
        frames = model.data_preprocessor.normalize(
            video['frames'], channel_dim=-3).double()
        x = backbone.forward_causal(
            dict(frames=frames.transpose(0, 1)[None]))[0][0]
        x = torch.cat([x[:, None], backbone.anticipate(x)], dim=1)
        return 0, model.cls_head(x)['action']
    L = backbone.work_memory_length
    stretch = make_stream_step(model).stretch_long_memory
    long, masks, starts, _ = zip(*(
        window_of(backbone, t, 4, 1, stretch) for t in range(L - 1, LENGTH)))
    work = torch.tensor(starts)[:, None] + torch.arange(L)
    x = dense_features(backbone, video, torch.stack(long), work,
                       torch.stack(masks))
    return L - 1, model.cls_head(x)['action']


def at(video, t):
    return {name: x[t] for name, x in video.items()}


def quietly(function, *args):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        return function(*args)


def test_every_registered_network_has_a_contract():
    found = {kind for kind in MODELS.module_dict.values()
             if kind.__module__.startswith('mmvidattn.online')
             and issubclass(kind, BaseModule)}
    assert found == set(STEPS)


def test_stream_equals_the_whole_video(model, videos):
    """However many frames are pushed at once."""
    first, want = whole(model, videos[0])
    got = StreamSession(model).push(videos[0])['action']
    assert relative(got[first:], want) < 1e-6
    session, parts, t, rng = StreamSession(model), [], 0, random.Random(0)
    while t < LENGTH:
        number = rng.randint(1, 9)
        parts.append(session.push(
            {name: x[t:t + number] for name, x in videos[0].items()}))
        t += number
    assert torch.equal(torch.cat([part['action'] for part in parts]), got)
    # The scores depend on the video.
    assert relative(whole(model, videos[1])[1], want) > 1e-3
    assert session.num_steps == LENGTH and not session.num_bad_frames


def test_dropout_is_off(model, videos):
    video = {name: x[:20] for name, x in videos[0].items()}
    want = StreamSession(model).push(video)['action']
    changed = build(model.name)
    changed.load_state_dict(model.state_dict())
    for module in changed.modules():
        for name in DROPOUT:
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, .9)
    assert torch.equal(StreamSession(changed).push(video)['action'], want)


def test_streams_join_leave_reset_and_resume(model, videos):
    """Random batches of streams of any age equal each stream alone."""
    want = [StreamSession(model).push(at(video, slice(0, 20)))
            for video in videos]
    sessions = [StreamSession(model)]
    sessions += [sessions[0].spawn() for _ in videos[1:]]
    rng, resets = random.Random(0), 0
    for _ in range(60):
        some = rng.sample(range(4), rng.randint(1, 4))
        if rng.random() < .1:
            sessions[some[0]].reset()
            resets += 1
        if rng.random() < .2:
            file = io.BytesIO()
            torch.save(sessions[some[0]].state_dict(), file)
            file.seek(0)
            sessions[some[0]] = sessions[0].spawn()
            sessions[some[0]].load_state_dict(
                torch.load(file, weights_only=True))
        some = [i for i in some if sessions[i].num_steps < 20]
        ages = [sessions[i].num_steps for i in some]
        found = StreamSession.push_many(
            [sessions[i] for i in some],
            [at(videos[i], t) for i, t in zip(some, ages)])
        for i, t, result in zip(some, ages, found):
            assert result.keys() == want[i].keys()
            assert relative(result['action'], want[i]['action'][t]) < 1e-9
    assert resets and max(x.num_steps for x in sessions) == 20


@pytest.mark.parametrize('age', [0, 1, 13])
def test_skips_and_bad_frames_equal_missing_frames(model, videos, age):
    """For any number of frames, even more than the memories hold."""
    start, number = StreamSession(model), 0
    if age:
        start.push(at(videos[0], slice(0, age)))
    missing = start.spawn()
    missing.load_state_dict(start.state_dict())
    bad = {name: x.clone() for name, x in at(videos[1], 0).items()}
    next(iter(bad.values())).view(-1)[3] = torch.nan
    huge = {name: torch.full_like(x, torch.finfo(x.dtype).max)
            for name, x in bad.items()}
    for gap in 1, 2, 7, 70:
        skipped, other = start.spawn(), missing.spawn()
        skipped.load_state_dict(start.state_dict())
        quietly(skipped.skip, gap)
        while number < gap:
            frame = (None, bad, huge)[number % 3]
            assert quietly(missing.push, frame)['bad_frame']
            number += 1
        other.load_state_dict(missing.state_dict())
        assert skipped.num_steps == other.num_steps == age + gap
        assert skipped.num_bad_frames == other.num_bad_frames == gap
        got, want = (session.push(at(videos[0], slice(20, 24)))['action']
                     for session in (skipped, other))
        assert relative(got, want) < 1e-6, gap


def test_state_has_a_constant_size(model, videos):
    """Exported programs and CUDA graphs rely on it."""
    step = make_stream_step(model)
    for x in step.initial_state(2).values():
        assert len(x) == 2 and len(x.unique()) == 1
    state = step.initial_state(1)
    before = {name: (x.data_ptr(), x.shape) for name, x in state.items()}
    with torch.no_grad():
        for t in range(9):
            frame, = step.split_frames(at(videos[0], t))[0]
            step({name: x[None] for name, x in frame.items()}, state)
    assert {name: (x.data_ptr(), x.shape)
            for name, x in state.items()} == before
    assert state['count'] == 9


def test_rejects_training_mode_and_other_frames(model, videos):
    session, frame = StreamSession(model), at(videos[0], 0)
    for name, x in frame.items():
        with pytest.raises(ValueError, match=name):
            session.push({**frame, name: x[..., 1:]})
    with pytest.raises(ValueError, match='must have'):
        session.push(dict(other=next(iter(frame.values()))))
    assert session.num_steps == 0
    model.train()
    try:
        with pytest.raises(ValueError, match='eval mode'):
            StreamSession(model)
    finally:
        model.eval()
    assert np.isfinite(session.num_bytes)
