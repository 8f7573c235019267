# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import io
import random
import threading
import warnings

import pytest
import torch
from helpers import relative
from online.detectors import VARIANTS, detector_of
from online.networks import (
    frame_of,
    video_of,
    window_of,
)
from online.torch_testra import TorchTeSTra

from mmvidattn.convert import convert
from mmvidattn.online import StreamSession
from mmvidattn.online.window_steps import TeSTraStep


def _expected(reference, model, video, times, *sampling):
    """Yield each time with its frame's scores in the dataset's window.

    A young stream has only the score of the frame itself.
    """
    long, masks, starts, places = zip(*(
        window_of(model.backbone, t, *sampling) for t in times))
    L = model.backbone.work_memory_length
    work = torch.tensor(starts)[:, None] + sampling[1] * torch.arange(L)
    # Earlier scores do not depend on frames after t.
    x = torch.cat([torch.stack(long),
                   work.clamp(max=len(video['rgb']) - 1)], dim=1)
    mask = torch.stack(masks)
    out = reference(video['rgb'][x], video['flow'][x],
                    mask if mask.numel() else None)
    for i, (t, place) in enumerate(zip(times, places)):
        stop = None if place == L - 1 else place + 1
        yield t, {name: y[i, place:stop] for name, y in out.items()}


# Streams do not support several layers in the first stage of the encoder.
STREAMED = VARIANTS.keys() - {'deep-gelu'}


@pytest.mark.parametrize('pair, long_rate, work_rate, length', [
    *(pytest.param(VARIANTS[name], 3, 2, 52, id=f'{name}-3-2')
      for name in sorted(STREAMED)),
    *(pytest.param(VARIANTS[name], 4, 1, 58, id=f'{name}-4-1')
      for name in ('anticipation', 'lstr'))], indirect=['pair'])
def test_matches_windows_at_any_age(pair, long_rate, work_rate, length):
    reference, model = pair
    video = video_of(model, length)
    session = StreamSession(model, long_rate, work_rate)
    out = session.push(video)
    reach = (model.backbone.work_memory_length - 1) * work_rate
    first = reach if model.backbone.fusion == 'long' else 0
    for t, want in _expected(
            reference, model, video, range(first, length), long_rate,
            work_rate, model.backbone.long_memory_pos_embed):
        for name, rows in want.items():
            got = out[name][t, :len(rows)]
            # The kernel's logarithms are in float32.
            assert relative(got, rows) < 1e-6, (name, t)
    assert session.num_steps == length and session.num_bad_frames == 0


@pytest.mark.parametrize('decay', [1., 0.7])
def test_smoothing_equals_a_window_of_all_frames(decay):
    options = dict(decay=decay, tokens=2)
    torch.manual_seed(0)
    short = TorchTeSTra(long=3, **options).double().eval()
    whole = TorchTeSTra(long=15, **options).double().eval()
    whole.load_state_dict(short.state_dict())
    model = _ours(short, long=3, **options)
    wide = _ours(short, long=15, **options)
    video = video_of(model, 60)
    out = StreamSession(model, 4, 2, kernel='smoothing').push(video)['action']
    for t, want in _expected(whole, wide, video, range(60), 4, 2, False):
        rows = want['action']
        assert relative(out[t, :len(rows)], rows) < 1e-6, t


def _ours(reference, **options):
    model = detector_of(options)
    model.load_state_dict(convert('testra', reference.state_dict()))
    return model.double().eval()


@pytest.mark.parametrize('kernel', ['window', 'smoothing'])
def test_sessions_of_any_age_can_be_batched(detector, kernel):
    model = detector('verbs-and-nouns').double().eval()
    options = 4, 2, kernel
    videos = [video_of(model, 20, seed=i) for i in range(4)]
    alone = [StreamSession(model, *options).push(v) for v in videos]
    sessions = [StreamSession(model, *options)]
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
            assert result.keys() == alone[i].keys()
            for key in result.keys() - {'bad_frame'}:
                assert relative(result[key], alone[i][key][t]) < 1e-9


def test_repeated_batch_is_not_copied(detector):
    model = detector('laplace').eval()
    sessions = [StreamSession(model)]
    sessions += [sessions[0].spawn(), sessions[0].spawn()]
    frames = [frame_of(video_of(model, 1, torch.float32), 0)] * 3
    StreamSession.push_many(sessions, frames)
    places = [s._state['values'].data_ptr() for s in sessions]
    StreamSession.push_many(sessions, frames)
    sessions[1].push(frames[1])
    sessions[2].reset()
    StreamSession.push_many(sessions, frames)
    assert [s._state['values'].data_ptr() for s in sessions] == places
    assert [s.num_steps for s in sessions] == [3, 4, 1]


def test_threads_can_use_different_sessions(detector):
    """8 streams, interleaved, with resets, from 4 threads."""
    model = detector('anticipation').eval()
    first = StreamSession(model)
    sessions = [first] + [first.spawn() for _ in range(7)]
    videos = [video_of(model, 8, torch.float32, seed=i) for i in range(8)]
    want = [StreamSession(model).push(v)['action'] for v in videos]
    wrong = []

    def follow(worker):
        rng = random.Random(worker)
        mine = range(worker, 8, 4)
        for _ in range(40):
            i = rng.choice(mine)
            t = sessions[i].num_steps
            if t == 8 or rng.random() < 0.1:
                sessions[i].reset()
                t = 0
            got = sessions[i].push(frame_of(videos[i], t))['action']
            if not torch.equal(got, want[i][t]):
                wrong.append((i, t))

    threads = [threading.Thread(target=follow, args=(n, )) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize('name, kernel, stop', [
    ('laplace', 'smoothing', 31), ('anticipation', 'window', 2),
    ('lstr', 'window', 17)])
def test_resumes_from_files_with_the_same_bits(detector, tmp_path, name,
                                               kernel, stop):
    """The weights and the state in two files are all that is needed."""
    model = detector(name).eval()
    video = video_of(model, 50, torch.float32)
    session = StreamSession(model, kernel=kernel)
    session.push({n: x[:stop] for n, x in video.items()})
    rest = {n: x[stop:] for n, x in video.items()}
    torch.save(model.state_dict(), tmp_path / 'model.pth')
    torch.save(session.state_dict(), tmp_path / 'session.pth')
    want = session.push(rest)['action']
    other = detector_of(VARIANTS[name]).eval()
    other.load_state_dict(
        torch.load(tmp_path / 'model.pth', weights_only=True))
    resumed = StreamSession(other, kernel=kernel)
    resumed.load_state_dict(
        torch.load(tmp_path / 'session.pth', weights_only=True))
    assert torch.equal(resumed.push(rest)['action'], want)


def test_state_contains_only_one_session(detector):
    """Saving a session of a batch does not save the batch."""
    model = detector('laplace').eval()
    sessions = [StreamSession(model)]
    sessions += [sessions[0].spawn() for _ in range(20)]
    frame = frame_of(video_of(model, 1, torch.float32), 0)
    StreamSession.push_many(sessions, [frame] * 21)
    sizes = []
    for session in (StreamSession(model), sessions[3]):
        file = io.BytesIO()
        torch.save(session.state_dict(), file)
        sizes.append(len(file.getvalue()))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize('bad, kernel', [
    (dict(flow=-torch.inf), 'window'), (dict(rgb=None), 'window'),
    (dict(rgb=1e30), 'smoothing'), (None, 'smoothing')])
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
            if bad is not None:
                for name, value in bad.items():
                    frame[name] = value
                    if value is not None:
                        frame[name] = video[name][t].clone()
                        frame[name][3] = value
            else:
                frame = None
            with pytest.warns(UserWarning, match=f'frame {t} of a stream is'):
                out = session.push(frame)
        expected = want.push(last)
        assert bool(out['bad_frame']) == (t in wrong)
        assert torch.equal(out['action'], expected['action']), t
    assert session.num_bad_frames == 4 and want.num_bad_frames == 0


@pytest.mark.parametrize('name, kernel, rates, age', [
    ('anticipation', 'smoothing', (4, 1), 0),
    ('anticipation', 'smoothing', (4, 1), 21),
    ('box', 'smoothing', (3, 2), 2), ('lstr', 'window', (4, 1), 2),
    ('long-memory', 'window', (2, 1), 21)])
def test_skip_equals_pushing_missing_frames(detector, name, kernel, rates,
                                            age):
    """For any number of frames, even more than the memories hold."""
    model = detector(name).double().eval()
    video = video_of(model, 23)
    decoded = []
    model.backbone.decoder.register_forward_hook(
        lambda *args: decoded.append(1))
    first, pushed = StreamSession(model, *rates, kernel), 0
    if age:
        first.push({n: x[:age] for n, x in video.items()})
    pushes = first.spawn()
    pushes.load_state_dict(first.state_dict())
    for number in (0, 1, 2, 7, 70):
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            for _ in range(number - pushed):
                pushes.push(None)
        pushed, skips = number, first.spawn()
        skips.load_state_dict(first.state_dict())
        decoded.clear()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter('always')
            skips.skip(number)
        assert not decoded and len(warned) == min(number, 1)
        assert skips.num_steps == pushes.num_steps == age + number
        assert skips.num_bad_frames == pushes.num_bad_frames == number
        for key, want in pushes.state_dict()['state'].items():
            torch.testing.assert_close(
                skips.state_dict()['state'][key], want, rtol=1e-9, atol=1e-12)
        again = pushes.spawn()
        again.load_state_dict(pushes.state_dict())
        got, want = (
            session.push({n: x[21:] for n, x in video.items()})['action']
            for session in (skips, again))
        assert relative(got, want) < 1e-9, number


@pytest.mark.parametrize('dtype, tolerance', [
    (torch.float16, 1e-2), (torch.bfloat16, 5e-2)])
@pytest.mark.parametrize('name, kernel', [
    ('laplace', 'smoothing'), ('lstr', 'window')])
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


@pytest.mark.parametrize('name, kernel', [
    ('laplace', 'smoothing'), ('long-memory', 'window')])
@pytest.mark.parametrize('dtype, values', [
    (torch.float64, (1e155, 1e200, 1e300)),
    (torch.float32, (1e19, 1e20, 1e22, 1e30, 3e38)),
    (torch.bfloat16, (1e19, 1e20, 1e22, 1e30, 3e38)),
    (torch.float16, (5e3, 1e4, 2e4, 4e4, 6.5e4))])
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
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        out = session.push(video)
    assert all(x.isfinite().all() for x in out.values())
    if dtype != torch.float16:
        assert session.num_bad_frames == len(values)


@pytest.mark.parametrize('name, kernel', [
    ('laplace', 'smoothing'), ('lstr', 'window')])
@pytest.mark.parametrize('dtype', [torch.float32, torch.float16])
@pytest.mark.parametrize('gain', [1, 30])
@torch.no_grad()
def test_everything_up_to_the_limit_is_finite(detector, name, kernel, dtype,
                                              gain):
    """Limit of docs/streaming.md; larger projections are bad."""
    model = detector(name).eval()
    attention = model.backbone.decoder.transformer.blocks[0].self_attn
    attention.proj.weight *= gain
    # The memories hold 17 frames.
    step = TeSTraStep(model.to(dtype), 1, kernel=kernel)
    video = video_of(model, 24, seed=1)
    state, limit = step.initial_state(1), step.limit.item()
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


@pytest.mark.parametrize('name', [
    'decoder.transformer.blocks.0.self_attn.proj',
    'decoder.transformer.blocks.1.memory_attn.proj',
    'encoder.stages.0.blocks.0.memory_attn.proj'])
def test_overflow_in_an_output_projection_is_a_bad_frame(detector, name):
    """The frame is harmless without the large output projection."""
    model = detector('laplace').eval()
    video = video_of(model, 12, torch.float32)
    video['rgb'][5] *= 1e10
    assert StreamSession(model).push(video)['bad_frame'].sum() == 0
    model.backbone.get_submodule(name).weight.data *= 1e12
    with pytest.warns(UserWarning, match='frame 5 of a stream'):
        out = StreamSession(model).push(video)
    assert out['bad_frame'].nonzero().tolist() == [[5]]
    assert out['action'].isfinite().all()


@pytest.mark.slow
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
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        got, want = (session.push({
            n: x.to(session.step.example.dtype) for n, x in video.items()})
            for session in sessions)
    assert got['action'].isfinite().all()
    assert sessions[0].num_bad_frames == int((kind > .998).sum())
    difference = got['action'].double() - want['action']
    norms = want['action'].norm(dim=(1, 2))
    assert (difference.norm(dim=(1, 2)) / norms).max() < tolerance


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs CUDA')
@pytest.mark.parametrize('kernel', ['window', 'smoothing'])
def test_cuda_graph_gives_the_scores_of_the_step(detector, kernel):
    model = detector('anticipation').eval().cuda()
    video = {n: x.cuda() for n, x in
             video_of(model, 30, torch.float32).items()}
    want = StreamSession(model, kernel=kernel).push(video)['action']
    sessions = [StreamSession(model, kernel=kernel)]
    sessions.append(sessions[0].spawn())
    StreamSession.record_graph(sessions)
    for _ in range(2):
        for t in range(30):
            for out in StreamSession.push_many(sessions,
                                               [frame_of(video, t)] * 2):
                assert relative(out['action'], want[t]) < 1e-5
        for session in sessions:
            session.reset()


@pytest.mark.parametrize('name, kwargs, message', [
    ('laplace', dict(kernel='box'), "kernel must be one of window, smoothing "
     "or None, got 'box'"),
    ('lstr', dict(kernel='smoothing'), 'the model has positions in its long'),
    ('long-memory', dict(kernel='smoothing'), "has fusion='long'"),
    ('short-only', dict(kernel='smoothing'), 'has no long memory'),
    ('laplace', dict(kernel='smoothing', work_memory_sample_rate=5),
     r'work_memory_sample_rate > long_memory_sample_rate \(5 and 4\)'),
    ('deep-gelu', {}, r"first stage must have one layer .*, got 2"),
    ('laplace', dict(long_memory_sample_rate=0), 'long_memory_sample_rate m'),
    ('laplace', dict(work_memory_sample_rate=0), 'work_memory_sample_rate m'),
])
def test_rejects_options(detector, name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        StreamSession(detector(name).eval(), **kwargs)


@pytest.mark.parametrize('change, message', [
    (lambda x: x.pop('flow'), 'features must have rgb, flow, got rgb'),
    (lambda x: x.update(rgb=x['rgb'][..., :9]), r"features\['rgb'\] must be"),
    (lambda x: x.update(flow=x['flow'][:2]), r"features\['flow'\] must be"),
    (lambda x: x.update(flow=x['flow'][0]), r"features\['flow'\] must be"),
    (lambda x: x.update(rgb=x['rgb'][:0], flow=x['flow'][:0]),
     'T >= 1'),
], ids=['missing', 'channels', 'length', 'dims', 'empty'])
def test_rejects_features(detector, change, message):
    model = detector().eval()
    features = video_of(model, 3, torch.float32)
    change(features)
    with pytest.raises(ValueError, match=message):
        StreamSession(model).push(features)


def test_rejects_batches(detector):
    model = detector().eval()
    session, video = StreamSession(model), video_of(model, 3, torch.float32)
    frame = frame_of(video, 0)
    assert StreamSession.push_many([], []) == []
    for sessions, features, message in (
        ([session, session], [frame] * 2, 'got one twice'),
        ([session, StreamSession(model)], [frame] * 2, 'session.spawn()'),
        ([session], [frame] * 2, 'got 2 for 1'),
        ([session], [video], 'must be one frame of each stream')):
        with pytest.raises(ValueError, match=message):
            StreamSession.push_many(sessions, features)
    for owner in StreamSession, session:
        with pytest.raises(ValueError, match='on a CUDA device, got one on c'):
            owner.record_graph([session])


def test_rejects_states_of_other_models(detector):
    state = StreamSession(detector('laplace').eval()).state_dict()
    for other, message in (
        (StreamSession(detector('laplace').eval(), 3), 'the options of state'),
        (StreamSession(detector('box').double().eval()), 'the state of stat'),
    ):
        with pytest.raises(ValueError, match=message):
            other.load_state_dict(state)
    with pytest.raises(ValueError, match='of version 1, got 2'):
        other.load_state_dict(dict(state, version=2))
