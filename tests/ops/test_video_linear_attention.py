# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from helpers import relative
from ops.video_linear_attention_cases import case, naive

from mmvidattn.layers import VideoSelfAttention
from mmvidattn.ops import shift_plan
from mmvidattn.ops.feature_fixation import gate_kind
from mmvidattn.ops.video_linear_attention import (
    Options,
    video_linear_attention,
)


@pytest.mark.parametrize('pattern', ['space', 'time', 'joint'])
@pytest.mark.parametrize('gate', [
    None, 'shared', 'qk', 'unshared', 'separate', 'add', 'mul'])
def test_matches_naive(pattern, gate):
    qkv, gate = case((2, 4, 3, 2), 2, 6, gate)
    options = dict(
        num_heads=2, pattern=pattern, gate=gate, offset=0.3,
        folds=shift_plan('tsm', 12, divisor=4), segment_frames=2)
    y = video_linear_attention(qkv, Options(**options))
    assert relative(y, naive(qkv, **options)) < 1e-12


def test_kernel_names_of_gates():
    gates = None, 'shared', 'qk', 'unshared', 'separate'
    assert [gate_kind(case((1, 1, 1, 1), 2, 4, gate)[1])
            for gate in gates] == [
        'none', 'shared', 'shared', 'unshared', 'separate']


@pytest.mark.parametrize('gate', [None, 'shared', 'unshared', 'separate'])
@pytest.mark.parametrize('shift', [
    None, dict(mode='eight'), dict(mode='tsm', divisor=4, segment_frames=2)])
def test_fused_layer_equals_layer_with_hooks(gate, shift):
    """A hook on a part makes the layer call its parts separately."""
    fixation = dict(
        shared=dict(), unshared=dict(shared=False),
        separate=dict(mode='separate')).get(gate)
    layer = VideoSelfAttention(
        64, 2, dict(type='LinearAttention', offset='auto'), (4, 3, 3),
        pattern='space', fixation=fixation, shifts=[shift] if shift else [])
    x = torch.randn(2, 4, 3, 3, 64)
    expected = layer(x)
    calls = []
    layer.attention.register_forward_hook(lambda *args: calls.append(1))
    assert torch.equal(layer(x), expected)
    assert len(calls) == 1


@pytest.mark.parametrize('options, words', [
    (dict(num_heads=5), r'num_heads=5, got \(1, 2, 3, 3, 24\)'),
    (dict(num_heads=2, pattern='frame'), "pattern must be .* got 'frame'"),
    (dict(num_heads=2, segment_frames=3), 'segment_frames=3'),
])
def test_rejects(options, words):
    with pytest.raises(ValueError, match=words):
        video_linear_attention(torch.zeros(1, 2, 3, 3, 24), Options(**options))


@pytest.mark.parametrize('shape', [(2, 3, 3, 24), (1, 1, 2, 3, 3, 24)])
def test_rejects_other_dimensions(shape):
    with pytest.raises(ValueError, match=r'qkv \[B, T, H, W, 3 C\]'):
        video_linear_attention(torch.zeros(shape), Options(2))
