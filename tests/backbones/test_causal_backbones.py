# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Causal backbones as streams, and as masked clips."""
import numpy as np
import pytest
import torch
from backbones.families import TINY
from helpers import relative

from mmvidattn.backbones import LinearVideoTransformer, ViViT, XViT
from mmvidattn.layers import linear_attention
from mmvidattn.ops.frame_causal_linear_attention import (
    naive_frame_causal_linear_attention,
)

DECAY = dict(half_life=(2, 8))
FACTORIZED = dict(model='fact_encoder', tubelet_frames=1,
                  num_temporal_layers=2)
SOFTMAX = dict(type='SoftmaxAttention', window_frames=4)
# A grid of 1 x 2 tokens.
SMALL = dict(num_frames=4, img_size=(4, 8), patch_size=4, patch_stride=4,
             patch_padding=0, embed_dims=16, num_layers=2, num_heads=2,
             pattern='causal', init_std=.25)
MODELS = {
    'vivit-linear-decay': (ViViT, dict(
        FACTORIZED, pool='mean', causal=dict(decay=DECAY))),
    'vivit-softmax-decay': (ViViT, dict(
        FACTORIZED, with_cp=True, causal=dict(
            attention=SOFTMAX, decay=DECAY))),
    'vivit-fixation': (ViViT, dict(
        FACTORIZED, causal=dict(), fixation={},
        attention=dict(type='LinearAttention'))),
    'xvit': (XViT, dict(causal=True)),
    'xvit-window': (XViT, dict(
        causal=True, temporal_shift=dict(mode='window', size=2, alpha=.5))),
    'xvit-no-mixing': (XViT, dict(causal=True, temporal_shift=None)),
    'linear_ff': (LinearVideoTransformer, SMALL),
    'linear_ff-decay': (LinearVideoTransformer, dict(SMALL, decay=DECAY)),
    'linear_ff-patches': (LinearVideoTransformer, dict(
        SMALL, patch_frames=3, decay=dict(DECAY, learned=False))),
    'linear_ff-fixation-first': (LinearVideoTransformer, dict(
        SMALL, fixation_first=True,
        temporal_shift=dict(mode='window', size=2, alpha=.5))),
}
EACH = pytest.mark.parametrize('backbone, options', MODELS.values(),
                               ids=MODELS)


def _build(backbone, options):
    torch.manual_seed(0)
    model = backbone(**{**TINY[backbone], **options}).double().eval()
    model.init_weights()
    return model


def _frames(model, num_frames=9, batch=2):
    return torch.randn(batch, 3, num_frames, *model.frame_shape,
                       dtype=torch.float64)


@EACH
def test_forward_reads_no_later_frame(backbone, options):
    model = _build(backbone, options)
    x = _frames(model).requires_grad_()
    y = model(x)
    torch.testing.assert_close(y, model.forward_causal(x)[0])
    gradient, = torch.autograd.grad(y[:, :, 4].square().sum(), x)
    there = gradient.abs().amax((0, 1, 3, 4)) > 0
    assert there[4] and not there[5:].any()
    # A frame depends on earlier ones as far as windows reach.
    reach = 2 if backbone is XViT else 4
    if options.get('temporal_shift', '') is not None:
        assert there[4 - reach:].sum() == 1 + reach


@EACH
def test_loads_bidirectional_checkpoint(backbone, options):
    model = _build(backbone, options)
    teacher = backbone(**{**TINY[backbone], **{
        name: value for name, value in options.items()
        if name not in ('causal', 'pattern', 'decay')}})
    torch.nn.init.normal_(next(teacher.parameters()))
    state = teacher.state_dict()
    result = model.load_state_dict(dict(state), strict=False)
    assert not result.unexpected_keys
    assert all('decay' in name for name in result.missing_keys)
    # Spatial attention becomes the single attention.
    trained = {name.replace('.spatial_attn', '.attn'): p
               for name, p in state.items() if 'temporal_attn' not in name}
    loaded = [name for name, _ in model.named_parameters() if name in trained]
    assert len(loaded) > 10
    assert all(torch.equal(model.get_parameter(name).float(), trained[name])
               for name in loaded)


def _run_schedule(model, x, elapsed, resets):
    """Process streams in random batches, parts and orders.

    Streams join and leave the batch in each call, have different ages, and
    start anew before the frame in ``resets``. In front of some frames, a part
    of the elapsed time belongs to dropped frames.
    """
    rng = np.random.default_rng(0)
    B, T = elapsed.shape
    states = [model.initial_state(1) for _ in range(B)]
    ages, parts = [0] * B, [[] for _ in range(B)]
    while unfinished := [i for i in range(B) if ages[i] < T]:
        some = rng.permutation(unfinished)[:rng.integers(1, B + 1)]
        ends = [resets[i] if ages[i] < resets[i] else T for i in some]
        length = min(int(rng.choice([1, 1, 1, 2, 40])),
                     *(end - ages[i] for i, end in zip(some, ends)))
        frames, times = (
            torch.stack([y[i, ..., ages[i]:ages[i] + length] for i in some])
            for y in (x.movedim(2, -1), elapsed))
        state = {name: torch.cat([states[i][name] for i in some])
                 for name in states[0]}
        if rng.random() < .3:
            dropped = times[:, 0] * torch.from_numpy(
                rng.choice([0., .4, 1.], len(some)))
            state = model.decay_state(state, dropped)
            times[:, 0] -= dropped
        y, state = model.forward_causal(frames.movedim(-1, 2), state, times)
        for row, i in enumerate(some):
            parts[i].append(y[row])
            ages[i] += length
            states[i] = model.initial_state(1) if ages[i] == resets[i] else {
                name: z[row:row + 1] for name, z in state.items()}
    return torch.stack([torch.cat(part, dim=1) for part in parts])


def _masked_attention(q, k, v, decay, state, elapsed, *, eps):
    return naive_frame_causal_linear_attention(
        q, k, v, decay, elapsed, eps), state


@EACH
def test_streams_that_join_skip_and_reset_equal_masked_clips(
        backbone, options, monkeypatch):
    model = _build(backbone, options)
    assert model.is_causal
    x, elapsed = _frames(model, 30, 3), 2 * torch.rand(3, 30).double()
    resets = [9, 29, 20]
    with torch.no_grad():
        got = _run_schedule(model, x, elapsed, resets)
        # The network ends with a norm.
        assert got.mean(1).abs().max() < 1e-9
        assert (got.square().mean(1) - 1).abs().max() < .1
        monkeypatch.setattr(linear_attention, 'frame_causal_linear_attention',
                            _masked_attention)
        for i, reset in enumerate(resets):
            want = torch.cat([model.forward_causal(
                x[i:i + 1, :, part], elapsed=elapsed[i:i + 1, part])[0]
                for part in (slice(reset), slice(reset, None))], dim=2)
            assert (got[i] - want[0]).abs().max() < 1e-10


@pytest.mark.parametrize('pattern', ['causal', 'factorized'])
def test_image_kernel_becomes_the_kernel_of_the_current_frame(pattern):
    """Patches of 3 frames then equal patches of one frame."""
    one, three = (_build(LinearVideoTransformer, dict(
        SMALL, num_frames=5, pattern=pattern, patch_frames=n)) for n in (1, 3))
    three.load_state_dict(one.state_dict(), strict=True)
    x = torch.randn(1, 3, 5, 4, 8, dtype=torch.float64)
    assert relative(three(x), one(x)) < 1e-12


@pytest.mark.slow
@pytest.mark.parametrize('name', ['linear_ff', 'linear_ff-decay'])
def test_stream_of_10000_frames_in_float32(name):
    model, state, parts = _build(*MODELS[name]), None, []
    x, elapsed = torch.randn(1, 3, 10_000, 4, 8), torch.rand(1, 10_000)
    with torch.no_grad():
        want, _ = model.forward_causal(x.double(), elapsed=elapsed.double())
        model.float()
        sizes = [1, 2, 1, 40] * 227 + [12]
        for frames, times in zip(x.split(sizes, 2), elapsed.split(sizes, 1)):
            y, state = model.forward_causal(frames, state, times)
            parts.append(y)
    assert relative(torch.cat(parts, dim=2), want) < 1e-5
