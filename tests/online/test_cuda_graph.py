# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CUDA graphs, and their properties that can be tested without CUDA."""
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from helpers import relative
from online.networks import NeverWait, frame_of, video_of

from mmvidattn.online import StreamSession, stream_session
from mmvidattn.online.stream_session import CUDAGraphStep


def frames_of(model, streams, seed):
    """Make a frame for each stream."""
    return video_of(model, streams, torch.float32, seed)


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


def test_replayed_session_has_the_same_scores(detector, cuda):
    model = detector('anticipation').eval()
    session = StreamSession(model, cuda_graph=True)
    # Recording does not change the state.
    assert session.num_steps == 0 and session.num_bad_frames == 0
    want = StreamSession(model)
    assert isinstance(session._batch.graph, CUDAGraphStep)
    kept = []
    for t in range(12):
        if t == 7:
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


def test_rejects_other_devices(detector):
    with pytest.raises(ValueError, match='cuda_graph=True needs a model on a '
                       'CUDA device, got one on cpu'):
        StreamSession(detector('laplace').eval(), cuda_graph=True)
    session = StreamSession(detector('laplace').eval())
    for owner in StreamSession, session:
        with pytest.raises(ValueError, match='on a CUDA device, got one on c'):
            owner.record_graph([session])
