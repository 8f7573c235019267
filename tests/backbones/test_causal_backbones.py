# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Causal ViViT and XViT as streams."""
import pytest
import torch
from backbones.families import TINY
from helpers import relative

from mmvidattn.backbones import ViViT, XViT

DECAY = dict(half_life=(2, 8))
FACTORIZED = dict(model='fact_encoder', tubelet_frames=1,
                  num_temporal_layers=2)
SOFTMAX = dict(type='SoftmaxAttention', window_frames=4)
MODELS = {
    'vivit-linear': (ViViT, dict(FACTORIZED, causal=dict())),
    'vivit-linear-decay': (ViViT, dict(
        FACTORIZED, pool='mean', causal=dict(decay=DECAY))),
    'vivit-softmax': (ViViT, dict(FACTORIZED, causal=dict(
        attention=SOFTMAX))),
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
def test_stream_equals_clip(backbone, options):
    model = _build(backbone, options)
    x, elapsed = _frames(model, 23), .5 + torch.rand(2, 23).double()
    assert model.is_causal
    with torch.no_grad():
        clip, last = model.forward_causal(x, elapsed=elapsed)
        assert clip.shape == (2, 32, 23, 1, 1)
        for splits in ([1] * 23, [5, 1, 1, 9, 7]):
            state, parts = model.initial_state(2), []
            shapes = {name: value.shape for name, value in state.items()}
            for frames, times in zip(x.split(splits, dim=2),
                                     elapsed.split(splits, dim=1)):
                y, state = model.forward_causal(frames, state, times)
                assert shapes == {name: value.shape
                                  for name, value in state.items()}
                parts.append(y)
            assert relative(torch.cat(parts, dim=2), clip) < 1e-12
            for name, value in state.items():
                torch.testing.assert_close(value.double(),
                                           last[name].double())


@EACH
def test_forward_reads_no_later_frame(backbone, options):
    model, x = _build(backbone, options), None
    x = _frames(model).requires_grad_()
    y = model(x)
    torch.testing.assert_close(y, model.forward_causal(x)[0])
    gradient, = torch.autograd.grad(y[:, :, 4].square().sum(), x)
    there = gradient.abs().amax((0, 1, 3, 4)) > 0
    assert there[4] and not there[5:].any()
    # A frame depends on earlier ones as far as windows reach.
    reach = dict(vivit=4, xvit=2)[backbone.__name__.lower()]
    if options.get('temporal_shift', '') is not None:
        assert there[4 - reach:].sum() == 1 + reach


@EACH
def test_loads_bidirectional_checkpoint(backbone, options):
    model = _build(backbone, options)
    teacher = backbone(**{
        **TINY[backbone],
        **{k: v for k, v in options.items() if k != 'causal'}})
    torch.nn.init.normal_(next(teacher.parameters()))
    result = model.load_state_dict(teacher.state_dict(), strict=False)
    assert not result.unexpected_keys
    assert all('decay' in name for name in result.missing_keys)
    trained = dict(teacher.named_parameters())
    assert all(torch.equal(p.float(), trained[name].float())
               for name, p in model.named_parameters() if name in trained)


@pytest.mark.parametrize('backbone, options, message', [
    (ViViT, dict(model='joint', causal={}), "causal requires model='fact_enc"),
    (ViViT, dict(FACTORIZED, tubelet_frames=2, causal={}),
     'tubelet_frames=1.*got 2'),
    (ViViT, dict(FACTORIZED, num_temporal_layers=0, causal={}),
     'num_temporal_layers.*got 0'),
    (ViViT, dict(FACTORIZED, causal=dict(window=4)), r"got \['window'\]"),
    (ViViT, dict(FACTORIZED, causal=dict(
        attention=dict(type='SoftmaxAttention'))), 'window_frames'),
    (XViT, dict(causal=True, temporal_shift=dict(
        mode='tsm', divisor=8, segment_frames=2)), 'segment_frames.*got 2'),
    (XViT, dict(causal=True, temporal_shift=dict(
        mode='tsm', divisor=8, boundary='self')), "got 'self'")])
def test_rejects_options_that_are_not_causal(backbone, options, message):
    with pytest.raises(ValueError, match=message):
        backbone(**{**TINY[backbone], **options})


def test_bidirectional_networks_cannot_be_streams():
    model = _build(XViT, {})
    assert not model.is_causal
    with pytest.raises(NotImplementedError, match='XViT.*not causal'):
        model.initial_state()
