# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch
from helpers import relative
from online.networks import VARIANTS, frame_of, video_of, windows_of

from mmvidattn.online import StreamSession
from mmvidattn.online.testra_step import TeSTraStep

BAD = 'ignore:.*of a stream'


# Goldens and the contract have streams of the other variants, except of
# 'deep-gelu', which streams do not support.
@pytest.mark.parametrize('pair, rates', [
    *(pytest.param(VARIANTS[name], (3, 2), id=name) for name in (
        'long-memory-positions', 'lstr-refined', 'no-positions', 'shallow',
        'short-only', 'verbs-and-nouns')),
    *(pytest.param(VARIANTS[name], (4, 1), id=name)
      for name in ('anticipation', 'lstr'))], indirect=['pair'])
def test_matches_windows_at_any_age(pair, rates):
    """A young stream has only the score of the frame itself."""
    reference, model = pair
    length = 13 * rates[0] + 6 * rates[1]
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
        if t in wrong:
            for name, value in bad.items():
                if value is not None:
                    value = frame[name].clone().index_fill_(
                        0, torch.tensor(3), value)
                frame[name] = value
            with pytest.warns(UserWarning, match=f'frame {t} of a stream is'):
                out = session.push(frame)
        else:
            out, last = session.push(frame), frame
        assert bool(out['bad_frame']) == (t in wrong)
        assert torch.equal(out['action'], want.push(last)['action']), t
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
    state = session.state_dict()['state']
    assert state['scores'].dtype == state['values'].dtype == torch.float32


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
    video = video_of(model, 2 * len(values) + 6, dtype)
    for i, value in enumerate(values):
        video['rgb'][2 * i + 1, i:] = value
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
    step = TeSTraStep(model.to(dtype), 1, kernel=kernel)
    video = video_of(model, 25, seed=1)
    state, limit = step.initial_state(1), step.limits['work']
    if dtype == torch.float16:
        # The limit depends on the weights.
        assert 4 < limit < 200 if large else 2000 < limit < 20_000
    project, factor = step.project, 0.99

    def enlarged(features):
        return {key: factor * limit * x.sign() if key in ('work', 'values')
                else x for key, x in project(features).items()}

    step.project = enlarged
    # The memories hold 17 frames.
    for t in range(25):
        factor = 1.02 if t == 24 else 0.99
        scores, state = step(frame_of(video, slice(t, t + 1)), state)
        assert bool(scores.pop('bad_frame')) == (t == 24)
        assert all(x.isfinite().all() for x in scores.values())


@pytest.mark.slow
@pytest.mark.filterwarnings(BAD)
@pytest.mark.parametrize('kernel', ['window', 'smoothing'])
def test_4000_difficult_frames_match_float64(detector, kernel):
    """Features drift, and some are silent, loud or not finite.

    With the smoothing kernel, the decay of 1 of 'box' never forgets a frame.
    """
    session, exact = (StreamSession(detector('box').to(dtype).eval(),
                                    kernel=kernel)
                      for dtype in (torch.float32, torch.float64))
    video = video_of(session.step.model, 4000, torch.float32)
    video['rgb'] += torch.linspace(0, 20, 4000)[:, None]
    for x in video.values():
        x[1000:1200] = 0
        x[2000::97] *= 100
    video['rgb'][::501, 3] = torch.nan
    video['flow'][5::501, 1] = torch.inf
    got = session.push(video)['action'].double()
    want = exact.push({n: x.double() for n, x in video.items()})['action']
    assert session.num_bad_frames == 16
    errors = (got - want).norm(dim=(1, 2)) / want.norm(dim=(1, 2))
    assert errors.max() < (1e-4 if kernel == 'smoothing' else 1e-3)
