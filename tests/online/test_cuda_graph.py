# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Properties of a CUDA graph that can be tested without CUDA."""
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from online.networks import frame_of, video_of
from torch.utils._python_dispatch import TorchDispatchMode

from mmvidattn.online import StreamSession, stream_session
from mmvidattn.online.stream_session import CUDAGraphStep

ATEN = torch.ops.aten
# Ops that wait for the device, because a number or a size is read.
WAITING = {
    ATEN._local_scalar_dense.default, ATEN.nonzero.default,
    ATEN.masked_select.default, ATEN.is_nonzero.default,
    ATEN.repeat_interleave.Tensor, ATEN._unique2.default
}


class NeverWait(TorchDispatchMode):

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        masks = func is ATEN.index.Tensor and [
            x for x in args[1] if x is not None and x.dtype == torch.bool]
        if func in WAITING or masks:
            raise RuntimeError(f'{func} waits for the device')
        return func(*args, **(kwargs or {}))


def frames_of(model, streams, seed):
    """Make a frame for each stream."""
    return video_of(model, streams, torch.float32, seed)


@pytest.mark.parametrize('name, kernel', [
    ('anticipation', 'window'), ('anticipation', 'smoothing'),
    ('lstr', 'window'), ('verbs-and-nouns', 'smoothing'),
    ('short-only', 'window')])
@torch.no_grad()
def test_step_can_be_recorded(detector, name, kernel):
    """Every step runs the same kernels on the same memory."""
    model = detector(name).eval()
    step = StreamSession(model, kernel=kernel).step
    state = step.initial_state(3)
    places = {n: (x.data_ptr(), x.shape) for n, x in state.items()}
    kernels = []

    class Record(NeverWait):

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = super().__torch_dispatch__(func, types, args, kwargs)
            shape = getattr(out, 'shape', None)
            kernels[-1].append((func, shape))
            return out

    for t in range(12):
        kernels.append([])
        with Record():
            step(frames_of(model, 3, t), state)
        state['count'][1] += 5 * (t == 7)
    assert {n: (x.data_ptr(), x.shape) for n, x in state.items()} == places
    assert all(step_kernels == kernels[0] for step_kernels in kernels)


def test_never_wait_detects_waiting_ops():
    x = torch.ones(3)
    for wait in lambda: x[0].item(), lambda: x[x > 0], lambda: x.nonzero():
        with pytest.raises(RuntimeError, match='waits for the device'):
            with NeverWait():
                wait()


@pytest.fixture
def cuda(monkeypatch):
    """Fake torch.cuda whose graphs repeat the recorded step."""
    recorded = {}

    class Graph:

        def replay(self):
            step, features, state, scores = recorded['run']
            with torch.no_grad(), NeverWait():
                for name, x in step.plain(features, state)[0].items():
                    scores[name].copy_(x)

    class Step:
        """Step that remembers the recorded call."""

        def __init__(self, step):
            self.plain, self.model = step, step.model
            self.example = SimpleNamespace(
                device=torch.device('cuda'))

        def __getattr__(self, name):
            return getattr(self.plain, name)

        def __call__(self, features, state):
            scores, state = self.plain(features, state)
            if recorded.get('now'):
                recorded['run'] = self, features, state, scores
            return scores, state

        def initial_state(self):
            return self.plain.initial_state()

    class Stream:

        def __init__(self, device=None):
            pass

        def wait_stream(self, other):
            pass

    @contextmanager
    def record(graph):
        recorded['now'] = True
        yield
        recorded['now'] = False

    @contextmanager
    def on(stream):
        yield

    for name, value in dict(
            Stream=Stream, current_stream=Stream, stream=on, graph=record,
            CUDAGraph=Graph).items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(
        stream_session, 'make_stream_step',
        lambda *args, make=stream_session.make_stream_step, **kwargs: Step(
            make(*args, **kwargs)))


@pytest.mark.parametrize('kernel', ['window', 'smoothing'])
def test_replayed_session_has_the_same_scores(detector, cuda, kernel):
    model = detector('anticipation').eval()
    session = StreamSession(model, kernel=kernel, cuda_graph=True)
    # Recording does not change the state.
    assert session.num_steps == 0 and session.num_bad_frames == 0
    want = StreamSession(model, kernel=kernel)
    assert isinstance(session._batch.graph, CUDAGraphStep)
    kept = []
    for t in range(30):
        if t == 15:
            session.reset(), want.reset()
        frame = frame_of(frames_of(model, 1, t), 0)
        kept.append((session.push(frame)['action'],
                     want.push(frame)['action']))
    # A later replay must not overwrite earlier scores.
    for got, expected in kept:
        assert torch.equal(got, expected)
    other = session.spawn()
    frames = [frame_of(frames_of(model, 1, 40), 0)] * 2
    out = StreamSession.push_many([session, other], frames)
    assert session._batch.graph is None
    assert torch.allclose(out[0]['action'], want.push(frames[0])['action'],
                          atol=1e-5)


def test_rejects_other_devices(detector):
    with pytest.raises(ValueError, match='cuda_graph=True needs a model on a '
                       'CUDA device, got one on cpu'):
        StreamSession(detector('laplace').eval(), cuda_graph=True)
