# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Soak of a causal stream of frames."""
import pytest
import torch

from mmvidattn.online.video_step import VideoStep
from tools.soak import causal_stream

pytestmark = pytest.mark.filterwarnings('ignore:frame .* of a stream')


def test_short_soak_passes_and_a_fault_is_found(monkeypatch):
    results = list(causal_stream.soak(40, checks=2, decays=False))
    assert [x['steps'] for x in results] == [20, 40]
    assert causal_stream.failures_of(results) == []
    assert all(x['error'] > 0 for x in results)
    push = causal_stream.StreamSession.push

    def inexact(self, frame):
        out = push(self, frame)
        exact = self.step.example.dtype == torch.float64
        return out if exact else {
            name: x * (1 + 1e-3) for name, x in out.items()}

    monkeypatch.setattr(causal_stream.StreamSession, 'push', inexact)
    result = causal_stream.failures_of(list(causal_stream.soak(4, checks=1)))
    assert len(result) == 1 and 'error' in result[0] and 'step 4' in result[0]


def test_counts_errors_that_small_changes_of_pixels_explain(monkeypatch):
    monkeypatch.setattr(causal_stream, 'LIMIT', 1e-9)
    result, = causal_stream.soak(4, checks=1)
    assert result['amplified'] == 4 and result['error'] == 0
    assert 1e-9 < result['largest'] < 1e-4


def test_finds_drift(monkeypatch):
    update = VideoStep.update

    def inexact(self, features, state):
        bad = update(self, features, state)
        if self.example.dtype == torch.float32:
            state['encoder.blocks.0.attn.attention.sums'].mul_(1 + 1e-5)
        return bad

    monkeypatch.setattr(VideoStep, 'update', inexact)
    result = causal_stream.failures_of(list(causal_stream.soak(4, checks=1)))
    assert len(result) == 1 and 'drift' in result[0]


def test_finds_growth():
    results = [dict(steps=i, drift=0., error=0., resident=i * 2**24)
               for i in (1, 3)]
    assert causal_stream.failures_of(results) == ['the memory grew by 32 MiB']
