# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Streams of causal video networks, from pixels to scores."""
import math
import warnings

import pytest
import torch
from helpers import relative
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.layers import FrameDecay
from mmvidattn.online import StreamSession, online_video_encoder

MEAN, STD = [100., 120., 130.], [50., 60., 70.]
HALF_LIFE = 4., 30.


def build_detector(**encoder):
    init_default_scope('mmaction')
    return MODELS.build(dict(
        type='OnlineActionDetector',
        backbone=dict(
            type='OnlineVideoEncoder',
            encoder={**dict(
                type='LinearVideoTransformer', pattern='causal', img_size=32,
                patch_frames=3, patch_stride=12, patch_padding=4,
                embed_dims=16, num_layers=2, num_heads=2,
                decay=dict(half_life=HALF_LIFE)), **encoder},
            num_anticipation_tokens=2),
        cls_head=dict(type='OnlineActionHead', num_classes=5, in_channels=16,
                      score='logit'),
        data_preprocessor=dict(
            type='VideoStreamPreprocessor', mean=MEAN, std=STD)))


def random_detector(**encoder):
    """Build a float64 detector whose weights are all random."""
    torch.manual_seed(0)
    model = build_detector(**encoder)
    for key, x in model.named_parameters():
        if 'log_factor' not in key:
            torch.nn.init.normal_(x, 'norm' in key and 'weight' in key, 0.3)
    return model.double().eval()


@pytest.fixture(scope='module')
def model():
    return random_detector()


def video_like(length, seed=0):
    gen = torch.Generator().manual_seed(seed)
    return torch.randint(256, (length, 3, 32, 32), generator=gen,
                         dtype=torch.uint8)


@torch.no_grad()
def scores_of(model, frames, elapsed=None):
    """Score frames [T, 3, H, W] in one pass: [T, 1 + A, K]."""
    mean, std = (torch.tensor(x, dtype=torch.float64).view(3, 1, 1)
                 for x in (MEAN, STD))
    frames = (frames.double() - mean) / std
    inputs = dict(frames=frames.transpose(0, 1)[None])
    if elapsed is not None:
        inputs['elapsed'] = torch.tensor([elapsed], dtype=torch.float64)
    backbone = model.backbone
    x = backbone.forward_causal(inputs)[0][0]
    return model.cls_head(torch.cat(
        [x[:, None], backbone.anticipate(x)], dim=1))['action']


def test_default_half_lives_rise_from_8_to_512_frames():
    rates = FrameDecay(3)()
    assert (math.log(2) / rates).tolist() == pytest.approx([8, 64, 512])


@torch.no_grad()
def test_anticipated_features_are_those_of_the_definition(model):
    backbone = model.backbone
    norm, widen, _, narrow = backbone.anticipation
    features = torch.randn(3, 16, dtype=torch.float64)
    for x, got in zip(features, backbone.anticipate(features), strict=True):
        for token, step in zip(backbone.anticipation_tokens, got,
                               strict=True):
            hidden = x + token
            hidden = (hidden - hidden.mean()) / (
                hidden.var(correction=0) + norm.eps).sqrt()
            hidden = widen.weight @ (
                hidden * norm.weight + norm.bias) + widen.bias
            hidden = hidden * (1 + torch.erf(hidden / 2 ** 0.5)) / 2
            torch.testing.assert_close(
                step, x + narrow.weight @ hidden + narrow.bias)


def test_dropped_frames_age_the_state_and_repeat_the_scores(model):
    """Missing, broken and skipped frames have the same effect."""
    video = video_like(6).double()
    want = scores_of(model, video, [1, 1, 1, 8.5, 1, 1])
    broken = torch.full_like(video[0], 7.)
    broken[1, 3, 5] = torch.nan
    huge = torch.full_like(video[0], torch.finfo(torch.float64).max)
    for gap in ('push', 'skip'):
        session = StreamSession(model)
        before = session.push(dict(frames=video[:3]))
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            if gap == 'push':
                session.skip(1, elapsed=.5)
                for frame in (None, dict(frames=None, elapsed=2.),
                              dict(frames=broken), dict(frames=huge)):
                    result = session.push(frame)
                    assert result['bad_frame']
                    assert torch.equal(
                        result['action'], before['action'][-1])
                session.skip(2)
            else:
                session.skip(10**6, elapsed=7.5)
        out = session.push(dict(frames=video[3:]))
        assert session.num_bad_frames == (7 if gap == 'push' else 10**6)
        assert session.num_steps == 6 + session.num_bad_frames
        assert relative(out['action'], want[3:]) < 1e-10


@pytest.mark.parametrize('at_once', [0, 3 * 32 * 32 * 2])
def test_large_batches_are_processed_in_parts(model, monkeypatch, at_once):
    monkeypatch.setattr(online_video_encoder, 'VALUES_AT_ONCE', at_once)
    videos = [video_like(6, seed) for seed in range(5)]
    first = StreamSession(model)
    sessions = [first, *(first.spawn() for _ in range(4))]
    backbone, batches = first.step.model.backbone, []
    forward = backbone.forward_causal

    def spy(inputs, *args):
        batches.append(len(inputs['frames']))
        return forward(inputs, *args)

    monkeypatch.setattr(backbone, 'forward_causal', spy)
    for t in range(6):
        frames = [dict(frames=video[t]) for video in videos]
        if t == 2:
            # Fails in one part only.
            frames[3] = None
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            out = StreamSession.push_many(sessions, frames)
        assert [bool(x['bad_frame']) for x in out] == [
            i == 3 and t == 2 for i in range(5)]
    assert set(batches) == ({1, 2} if at_once else {1})
    for i, (video, result) in enumerate(zip(videos, out)):
        elapsed = [1.] * 6
        if i == 3:
            video, elapsed = video[[0, 1, 3, 4, 5]], [1., 1., 2., 1., 1.]
        want = scores_of(model, video, elapsed)
        assert relative(result['action'], want[-1]) < 1e-10


@pytest.mark.parametrize('frame, message', [
    (dict(images=0), 'must have frames, elapsed, got images'),
    (dict(frames=torch.zeros(3, 32, 30)), r'\[3, 32, 32\] or \[T, 3, 32, 32'),
    (dict(frames=torch.zeros(2, 3, 3, 32, 32)), r'\[3, 32, 32\]'),
    (dict(frames=torch.zeros(3, 32, 32), elapsed=-1.), 'non-negative'),
    (dict(frames=torch.zeros(3, 32, 32), elapsed=float('nan')), 'non-neg'),
    (dict(frames=torch.zeros(3, 32, 32), elapsed=[1., 2.]), 'one for each'),
    (dict(frames=torch.zeros(3, 32, 32), elasped=1.), 'got frames, elasped'),
])
def test_rejects_frames(model, frame, message):
    with pytest.raises(ValueError, match=message):
        StreamSession(model).push(frame)


def test_rejects_options(model):
    with pytest.raises(ValueError, match='elapsed must be a non-negative'):
        StreamSession(model).skip(1, elapsed=-1.)
    with pytest.raises(ValueError, match="kernel must be 'window'"):
        StreamSession(model, kernel='smoothing')
    with pytest.raises(ValueError, match='encoder must be a causal network'):
        build_detector(pattern='joint', patch_frames=1, decay=None)
    for inputs, message in (
            ({}, r'\[B, 3, T, H, W\] with T >= 1, got nothing'),
            (dict(frames=torch.zeros(1, 3, 2, 32, 32),
                  elapsed=torch.zeros(1, 3)), r'\[B, T\] = \[1, 2\]')):
        with pytest.raises(ValueError, match=message):
            model.backbone(inputs)


def test_bfloat16_stays_close_and_keeps_float32_sums(model, monkeypatch):
    monkeypatch.setenv('MMVIDATTN_BFLOAT16', 'force')
    video = video_like(20)
    low = random_detector().bfloat16()
    session = StreamSession(low)
    assert session.step.frame_dtype == torch.float32
    sums = [x for name, x in session.step.initial_state().items()
            if name.endswith('sums')]
    assert sums and all(x.dtype == torch.float32 for x in sums)
    got = session.push(dict(frames=video))['action']
    assert relative(got, scores_of(model, video)) < .1


@pytest.mark.slow
def test_step_compiles_as_one_graph(model):
    video, plain = video_like(6), random_detector(num_layers=1).float()
    session = StreamSession(plain)
    want = session.push(dict(frames=video))['action']
    session.reset()
    session.step.compile(fullgraph=True, backend='aot_eager')
    assert relative(session.push(dict(frames=video))['action'], want) < 1e-5
