# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch
from helpers import relative
from online.networks import VARIANTS, frame_of, video_of, windows_of

from mmvidattn.online import StreamSession
from mmvidattn.online.testra_step import TeSTraStep

BAD = 'ignore:.*of a stream'
# Streams do not support several layers in the first stage of the encoder.
# Goldens and the contract have streams of the other variants.
STREAMED = VARIANTS.keys() - {'deep-gelu', 'box', 'laplace', 'no-fuse',
                              'long-memory'}


@pytest.mark.parametrize('pair, rates, length', [
    *(pytest.param(VARIANTS[name], (3, 2), 52, id=f'{name}-3-2')
      for name in sorted(STREAMED)),
    *(pytest.param(VARIANTS[name], (4, 1), 58, id=f'{name}-4-1')
      for name in ('anticipation', 'lstr'))], indirect=['pair'])
def test_matches_windows_at_any_age(pair, rates, length):
    """A young stream has only the score of the frame itself."""
    reference, model = pair
    backbone, video = model.backbone, video_of(model, length)
    out = StreamSession(model, *rates).push(video)
    L = backbone.work_memory_length
    first = (L - 1) * rates[1] if backbone.fusion == 'long' else 0
    frames, mask, places = windows_of(
        backbone, range(first, length), *rates,
        backbone.long_memory_pos_embed)
    # Earlier scores do not depend on frames after t.
    frames = frames.clamp(max=length - 1)
    want = reference(video['rgb'][frames], video['flow'][frames],
                     mask if mask.numel() else None)
    for t, place in enumerate(places):
        stop = None if place == L - 1 else place + 1
        for name, y in want.items():
            rows = y[t, place:stop]
            got = out[name][first + t, :len(rows)]
            # The kernel's logarithms are in float32.
            assert relative(got, rows) < 1e-6, (name, t)


@pytest.mark.parametrize('bad, kernel', [
    (dict(flow=-torch.inf, rgb=None), 'window'), (dict(rgb=1e30), 'smoothing')
])
def test_last_good_frame_replaces_a_bad_one(detector, bad, kernel):
    model = detector('anticipation').eval()
    video = video_of(model, 30, torch.float32)
    session, want = (StreamSession(model, kernel=kernel) for _ in range(2))
    last = {name: torch.zeros_like(x[0]) for name, x in video.items()}
    wrong = {0, 9, 10, 25}
    for t in range(30):
        frame = frame_of(video, t)
        if t not in wrong:
            out, last = session.push(frame), frame
        else:
            for name, value in bad.items():
                frame[name] = value
                if value is not None:
                    frame[name] = video[name][t].clone()
                    frame[name][3] = value
            with pytest.warns(UserWarning, match=f'frame {t} of a stream is'):
                out = session.push(frame)
        expected = want.push(last)
        assert bool(out['bad_frame']) == (t in wrong)
        assert torch.equal(out['action'], expected['action']), t
    assert session.num_bad_frames == 4 and want.num_bad_frames == 0


@pytest.mark.parametrize('dtype, tolerance, name, kernel', [
    (torch.float16, 1e-2, 'laplace', 'smoothing'),
    (torch.bfloat16, 5e-2, 'lstr', 'window')])
def test_half_precision_is_close(detector, dtype, tolerance, name, kernel):
    model = detector(name).eval()
    video = video_of(model, 40, torch.float32)
    want = StreamSession(model, kernel=kernel).push(video)['action']
    session = StreamSession(model.to(dtype), kernel=kernel)
    got = session.push(video)['action']
    assert got.dtype == dtype
    assert relative(got.float(), want) < tolerance
    for field in ('scores', 'values'):
        assert session._state[field].dtype == torch.float32


@pytest.mark.filterwarnings(BAD)
@pytest.mark.parametrize('name, kernel, dtype, values', [
    ('laplace', 'smoothing', torch.float64, (1e155, 1e200, 1e300)),
    ('laplace', 'smoothing', torch.float32, (1e18, 1e20, 1e22, 1e30, 3e38)),
    ('long-memory', 'window', torch.bfloat16, (1e19, 1e20, 1e22, 1e30, 3e38)),
    ('long-memory', 'window', torch.float16, (5e3, 1e4, 2e4, 4e4, 6.5e4))])
def test_overflow_after_the_projections_does_no_lasting_harm(
        detector, name, kernel, dtype, values):
    """A finite frame is scored or replaced."""
    model = detector(name).to(dtype).eval()
    video = video_of(model, 2 * len(values) + 6, torch.float32)
    video = {name: x.to(dtype) for name, x in video.items()}
    for i, value in enumerate(values):
        x = next(iter(video.values()))
        x[2 * i + 1, i % x.shape[1]:] = value
    session = StreamSession(model, kernel=kernel)
    out = session.push(video)
    assert all(x.isfinite().all() for x in out.values())
    if dtype != torch.float16:
        assert session.num_bad_frames == len(values)


@pytest.mark.parametrize('name, kernel, dtype, large', [
    ('laplace', 'smoothing', torch.float32, None),
    ('lstr', 'window', torch.float16, None),
    ('box', 'window', torch.float16, 'decoder.*self_attn'),
    ('box', 'window', torch.float16, 'decoder.*memory_attn'),
    ('lstr', 'window', torch.float16, 'encoder.*memory_attn')])
@torch.no_grad()
def test_everything_up_to_the_limit_is_finite(detector, name, kernel, dtype,
                                              large):
    """Limit of docs/streaming.md; larger projections are bad."""
    model = detector(name).eval()
    for key, weight in model.named_parameters():
        if large and re.search(rf'{large}\.proj\.weight', key):
            weight *= 300
    # The memories hold 17 frames.
    step = TeSTraStep(model.to(dtype), 1, kernel=kernel)
    video = video_of(model, 24, seed=1)
    state, limit = step.initial_state(1), step.limits['work']
    if dtype == torch.float16:
        # The limit depends on the weights.
        assert 4 < limit < 200 if large else 2000 < limit < 20_000
    project, factor = step.project, 0.99

    def enlarged(features):
        rows = project(features)
        for key in {'work', 'values'} & rows.keys():
            rows[key] = factor * limit * rows[key].sign()
        return rows

    step.project = enlarged
    for t in range(24):
        frame = {n: x[t:t + 1] for n, x in video.items()}
        scores, state = step(frame, state)
        assert not scores.pop('bad_frame')
        assert all(x.isfinite().all() for x in scores.values())
    factor = 1.02
    assert step.update(frame, state)


@pytest.mark.slow
@pytest.mark.filterwarnings(BAD)
@pytest.mark.parametrize('name, kernel, tolerance', [
    ('box', 'window', 1e-3), ('laplace', 'smoothing', 1e-4),
    ('box', 'smoothing', 1e-4)])
def test_4000_difficult_frames_match_float64(detector, name, kernel,
                                             tolerance):
    """Features drift, and some are silent, loud or not finite.

    With the smoothing kernel, the decay of 1 of 'box' never forgets a frame.
    """
    length = 4000
    sessions = [StreamSession(detector(name).to(dtype).eval(), kernel=kernel)
                for dtype in (torch.float32, torch.float64)]
    gen = torch.Generator().manual_seed(0)
    video = video_of(sessions[0].step.model, length, torch.float32)
    video['rgb'] += 20 * torch.arange(length)[:, None] / length
    kind = torch.rand(length, generator=gen)
    for x in video.values():
        x[1000:1200] = 0
        x[kind < .01] *= 100
    video['rgb'][kind > .999] = torch.nan
    video['flow'][(kind > .998) & (kind < .999)] = torch.inf
    got, want = (session.push({
        n: x.to(session.step.example.dtype) for n, x in video.items()})
        for session in sessions)
    assert got['action'].isfinite().all()
    assert sessions[0].num_bad_frames == int((kind > .998).sum())
    difference = got['action'].double() - want['action']
    norms = want['action'].norm(dim=(1, 2))
    assert (difference.norm(dim=(1, 2)) / norms).max() < tolerance
