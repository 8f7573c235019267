# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""MiniROAD and the causal transformer: maths, videos and streams."""
import io
import random
import warnings

import pytest
import torch
from helpers import relative
from online.rivals import build_rival

from mmvidattn.online import StreamSession, dense_features
from mmvidattn.online.make_stream_step import make_stream_step

NAMES = 'miniroad', 'causal_transformer'


@pytest.fixture(params=NAMES)
def model(request):
    torch.manual_seed(0)
    model = build_rival(request.param)
    for name, x in model.named_parameters():
        # Biases and distances begin with zeros, which hide mistakes.
        torch.nn.init.normal_(x, 'norm.weight' in name, 0.5)
    return model.double().eval()


def video_of(model, length=40, dtype=torch.float64, seed=0):
    gen = torch.Generator().manual_seed(seed)
    return {name: torch.randn(length, channels, generator=gen, dtype=dtype)
            for name, channels in model.backbone.in_channels.items()}


def frame_of(video, t):
    return {name: x[t] for name, x in video.items()}


def linear(weights, name, x):
    return x @ weights[f'{name}.weight'].T + weights[f'{name}.bias']


def layer_norm(weights, name, x):
    x = x - x.mean(-1, keepdim=True)
    x = x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return x * weights[f'{name}.weight'] + weights[f'{name}.bias']


def naive_rows(weights, video):
    x = torch.cat([video['rgb'], video['flow']], dim=1)
    x = linear(weights, 'projection.projection', x)
    return layer_norm(weights, 'projection.norm', x).clamp(min=0)


def naive_miniroad(weights, rows):
    """A frame, a layer and a gate at a time."""
    for layer in range(2):
        h, outputs = torch.zeros(8, dtype=rows.dtype), []
        w, u, b, c = (weights[f'gru.{name}_l{layer}'].chunk(3) for name in (
            'weight_ih', 'weight_hh', 'bias_ih', 'bias_hh'))
        for x in rows:
            r = torch.sigmoid(w[0] @ x + b[0] + u[0] @ h + c[0])
            z = torch.sigmoid(w[1] @ x + b[1] + u[1] @ h + c[1])
            n = torch.tanh(w[2] @ x + b[2] + r * (u[2] @ h + c[2]))
            h = (1 - z) * n + z * h
            outputs.append(h)
        rows = torch.stack(outputs)
    return rows.clamp(min=0)


def naive_causal_transformer(weights, rows):
    """A frame, a head and a key at a time."""
    for i in range(2):
        block = f'blocks.{i}'
        q = linear(weights, f'{block}.self_attn.q', rows)
        k, v = linear(weights, f'{block}.self_attn.kv', rows).split(8, 1)
        outputs = []
        for t in range(len(rows)):
            found = []
            for head in range(2):
                D = slice(4 * head, 4 * head + 4)
                seen = range(max(0, t - 3), t + 1)
                scores = torch.stack([
                    q[t, D] @ k[s, D] / 2 + weights['distances'][
                        i, head, t - s] for s in seen])
                share = scores.exp() / scores.exp().sum()
                found.append(sum(p * v[s, D] for p, s in zip(share, seen)))
            outputs.append(torch.cat(found))
        y = linear(weights, f'{block}.self_attn.proj', torch.stack(outputs))
        rows = layer_norm(weights, f'{block}.self_norm', rows + y)
        y = linear(weights, f'{block}.ffn.0', rows).clamp(min=0)
        rows = layer_norm(weights, f'{block}.ffn_norm',
                          rows + linear(weights, f'{block}.ffn.3', y))
    return layer_norm(weights, 'norm', rows)


@torch.no_grad()
def test_matches_naive(model):
    naive = globals()['naive_' + {
        'MiniROAD': 'miniroad', 'CausalTransformer': 'causal_transformer'
    }[type(model.backbone).__name__]]
    weights = dict(model.backbone.named_parameters())
    # Longer than a window, and no multiple of that of the attention.
    video = video_of(model, 14)
    want = naive(weights, naive_rows(weights, video))
    got = model.backbone({name: x[None] for name, x in video.items()})[0]
    assert relative(got, want) < 1e-12


@torch.no_grad()
@pytest.mark.parametrize('dtype', [torch.float64, torch.float32])
def test_stream_equals_the_video_at_every_step(model, dtype):
    model.to(dtype)
    video = video_of(model, dtype=dtype)
    got = StreamSession(model).push(video)['action']
    want = model({name: x[None] for name, x in video.items()})['action'][0]
    assert got.shape == (40, 1, 5)
    limit = 1e-12 if dtype == torch.float64 else 1e-5
    assert (got[:, 0] - want).abs().max() < limit


@torch.no_grad()
def test_a_batch_of_streams_is_each_by_itself(model):
    videos = [video_of(model, 12 + i, seed=i) for i in range(3)]
    longest = 14
    padded = {name: torch.stack([torch.cat(
        [x[name], x[name].new_zeros(longest - len(x[name]),
                                    x[name].shape[1])]) for x in videos])
        for name in videos[0]}
    got = model(padded)['action']
    for i, video in enumerate(videos):
        want = model({name: x[None] for name, x in video.items()})['action'][0]
        assert relative(got[i, :len(want)], want) < 1e-12


def test_dense_evaluation_reads_the_whole_video(model):
    L = model.backbone.work_memory_length
    video = video_of(model, 20)
    work = torch.arange(20 - L + 1)[:, None] + torch.arange(L)
    long = work.new_zeros(len(work), 0)
    got = dense_features(model.backbone, video, long, work)
    want = model.backbone({name: x[None] for name, x in video.items()})[0]
    assert relative(got[:, 0], want[L - 1:]) < 1e-12
    with pytest.raises(ValueError, match='follow each other'):
        dense_features(model.backbone, video, long[::2], work[::2])


def test_sessions_of_all_ages_share_a_step(model):
    videos = [video_of(model, 30, seed=i) for i in range(4)]
    alone = [StreamSession(model).push(v)['action'] for v in videos]
    sessions = [StreamSession(model)]
    sessions += [sessions[0].spawn() for _ in videos[1:]]
    rng = random.Random(0)
    for _ in range(60):
        some = rng.sample(range(4), rng.randint(1, 4))
        if rng.random() < 0.1:
            sessions[some[0]].reset()
        some = [i for i in some if sessions[i].num_steps < 30]
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
        skipped.skip(30)
        for _ in range(30):
            result = pushed.push(None)
    assert result['bad_frame']
    for _ in range(30):
        repeated.push(frame_of(good, before))
    assert skipped.num_bad_frames == pushed.num_bad_frames == 30
    next_frame = frame_of(video, 9)
    want = repeated.push(next_frame)['action']
    assert relative(pushed.push(next_frame)['action'], want) < 1e-12
    assert relative(skipped.push(next_frame)['action'], want) < 1e-6
    skipped.skip(0)
    assert skipped.num_steps == before + 31


@pytest.mark.parametrize('name', NAMES)
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


def test_rejects_what_it_is_not_made_for(model):
    with pytest.raises(ValueError, match="kernel must be 'window' or None"):
        StreamSession(model, kernel='smoothing')
    with pytest.raises(ValueError, match=r"inputs\['flow'\] must be"):
        model(dict(rgb=torch.zeros(1, 3, 6), flow=torch.zeros(1, 2, 4)))
    with pytest.raises(ValueError, match=r"inputs\['rgb'\] must be .*nothing"):
        model(dict(flow=torch.zeros(1, 2, 4)))
    with pytest.raises(ValueError, match='eval mode'):
        StreamSession(model.train())
    model.eval().backbone = torch.nn.Linear(1, 1)
    with pytest.raises(ValueError, match='backbone is one of .* got Linear'):
        make_stream_step(model)


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


def test_every_parameter_learns(model):
    model.train()
    video = video_of(model, 2 * 7)
    windows = {name: x.view(2, 7, -1) for name, x in video.items()}
    model(windows)['action'][:, -1].square().sum().backward()
    assert all(p.grad.abs().sum() > 0 for p in model.parameters())
