# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Causal linear video transformer: streams and the masked clip."""
import pytest
import torch
from causal_schedules import Causal, run_schedule, whole_streams
from helpers import relative

from mmvidattn.backbones import LinearVideoTransformer
from mmvidattn.layers import linear_attention
from mmvidattn.ops.frame_causal_linear_attention import (
    naive_frame_causal_linear_attention,
)

VARIANTS = {
    'plain': {},
    'decay': dict(decay=dict(half_life=(2, 50))),
    'patches-of-3-frames': dict(
        patch_frames=3, decay=dict(half_life=(2, 50), learned=False)),
    'fixation-first': dict(
        fixation_first=True,
        temporal_shift=dict(mode='window', size=2, alpha=.5)),
}
EACH = pytest.mark.parametrize('options', VARIANTS.values(), ids=VARIANTS)


def _build(**options):
    """Build a model with a grid of 1 x 2 tokens."""
    torch.manual_seed(0)
    model = LinearVideoTransformer(
        num_frames=4, img_size=(4, 8), patch_size=4, patch_stride=4,
        patch_padding=0, embed_dims=16, num_layers=2, num_heads=2,
        pattern='causal', init_std=.25, **options)
    model.init_weights()
    return model.double().eval()


def _masked_attention(q, k, v, decay, state, elapsed, *, eps):
    return naive_frame_causal_linear_attention(
        q, k, v, decay, elapsed, eps), state


@EACH
def test_streams_that_join_skip_and_reset_equal_masked_clips(
        options, monkeypatch):
    model = _build(**options)
    x = torch.randn(3, 300, 3, 4, 8, dtype=torch.float64)
    elapsed = 2 * torch.rand(3, 300, dtype=torch.float64)
    resets = [80, 299, 200]

    def forward(x, state, elapsed):
        y, state = model.forward_causal(x.transpose(1, 2), state, elapsed)
        return y.transpose(1, 2), state

    def masked(x, elapsed):
        return model.forward_causal(
            x.transpose(1, 2), elapsed=elapsed)[0].transpose(1, 2)

    with torch.no_grad():
        got = run_schedule(
            Causal(forward, model.initial_state, model.decay_state), x,
            elapsed, resets)
        monkeypatch.setattr(linear_attention, 'frame_causal_linear_attention',
                            _masked_attention)
        want = whole_streams(masked, x, elapsed, resets)
    assert (got - want).abs().max() < 1e-10


@pytest.mark.slow
@EACH
def test_stream_of_10000_frames_in_float32(options):
    model, state, parts = _build(**options), None, []
    x, elapsed = torch.randn(1, 3, 10_000, 4, 8), torch.rand(1, 10_000)
    with torch.no_grad():
        want, _ = model.forward_causal(x.double(), elapsed=elapsed.double())
        model.float()
        sizes = [1, 2, 1, 40] * 227 + [12]
        for frames, times in zip(x.split(sizes, 2), elapsed.split(sizes, 1)):
            y, state = model.forward_causal(frames, state, times)
            parts.append(y)
    assert relative(torch.cat(parts, dim=2), want) < 1e-5


@EACH
def test_later_frames_have_no_effect(options):
    model = _build(**options)
    x = torch.randn(2, 3, 9, 4, 8, dtype=torch.float64)
    other = torch.cat([x[:, :, :5], torch.randn_like(x[:, :, 5:])], dim=2)
    with torch.no_grad():
        a, b = model(x), model(other)
    assert torch.equal(a[:, :, :5], b[:, :, :5])
    assert not torch.allclose(a[:, :, 5:], b[:, :, 5:])


def test_loads_factorized_checkpoints():
    options = dict(
        num_frames=4, img_size=(4, 8), patch_size=4, patch_stride=4,
        patch_padding=0, embed_dims=16, num_layers=2, num_heads=2)
    state = LinearVideoTransformer(**options).state_dict()
    model = _build().float()
    model.load_state_dict(dict(state), strict=True)
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name.replace('attn', 'spatial_attn')])


def test_image_kernel_becomes_the_kernel_of_the_current_frame():
    """Patches of 3 frames then equal patches of one frame."""
    one, three = _build(), _build(patch_frames=3)
    three.load_state_dict(one.state_dict(), strict=True)
    x = torch.randn(1, 3, 5, 4, 8, dtype=torch.float64)
    assert relative(three(x), one(x)) < 1e-12


def test_rejects():
    with pytest.raises(ValueError, match="decay requires pattern='causal'"):
        LinearVideoTransformer(decay={})
    with pytest.raises(ValueError, match="boundary='zero', got 'self'"):
        _build(temporal_shift=dict(
            mode='tsm', divisor=4, boundary='self'))
    with pytest.raises(ValueError, match='causal.*CosFormerAttention'):
        _build(attention=dict(type='CosFormerAttention'))
