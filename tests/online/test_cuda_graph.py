# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""CUDA graphs, and their properties that can be tested without CUDA."""
from contextlib import contextmanager
from unittest.mock import MagicMock

import pytest
import torch
from helpers import relative
from online.networks import NeverWait, frame_of, video_of
from torch.nn.modules.module import register_module_forward_hook

from mmvidattn.online import StreamSession
from mmvidattn.online.stream_session import CUDAGraphStep


class Graph:
    """Graph that repeats the recorded call of a module."""

    @contextmanager
    def record(self):
        # The outermost module is the last one to return.
        hook = register_module_forward_hook(
            lambda *call: setattr(self, 'call', call))
        yield
        hook.remove()

    def replay(self):
        step, arguments, (scores, _) = self.call
        with torch.no_grad(), NeverWait():
            for name, x in step(*arguments)[0].items():
                scores[name].copy_(x)


@pytest.fixture
def cuda(monkeypatch):
    """Fake torch.cuda."""
    for name in 'Stream', 'current_stream', 'stream':
        monkeypatch.setattr(torch.cuda, name, MagicMock())
    monkeypatch.setattr(torch.cuda, 'CUDAGraph', Graph)
    monkeypatch.setattr(torch.cuda, 'graph', Graph.record)


def test_replayed_session_has_the_same_scores(detector, cuda):
    model = detector('anticipation').eval()
    session, want = StreamSession(model), StreamSession(model)
    session._batch.graph = CUDAGraphStep(session.step, session._batch.state)
    # Recording does not change the state.
    assert session.num_steps == 0 and session.num_bad_frames == 0
    video, scores = video_of(model, 13, torch.float32), []
    for each in session, want:
        first = [each.push(frame_of(video, t))['action'] for t in range(7)]
        each.reset()
        # A later replay must not overwrite earlier scores.
        scores.append(torch.stack(first + [
            each.push(frame_of(video, t))['action'] for t in range(12)]))
    assert torch.equal(*scores)
    frames = [frame_of(video, 12)] * 2
    out = StreamSession.push_many([session, session.spawn()], frames)
    assert session._batch.graph is None
    assert torch.allclose(out[0]['action'], want.push(frames[0])['action'],
                          atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason='needs CUDA')
@pytest.mark.parametrize('kernel', ['window', 'smoothing'])
def test_cuda_graph_gives_the_scores_of_the_step(detector, kernel):
    model = detector('anticipation').eval().cuda()
    video = {n: x.cuda() for n, x in
             video_of(model, 30, torch.float32).items()}
    first = StreamSession(model, kernel=kernel)
    want, sessions = first.push(video)['action'], [first.spawn() for _ in 'ab']
    StreamSession.record_graph(sessions)
    for t in (*range(30), *range(30)):
        if t == 0:
            for session in sessions:
                session.reset()
        for out in StreamSession.push_many(sessions, [frame_of(video, t)] * 2):
            assert relative(out['action'], want[t]) < 1e-5
