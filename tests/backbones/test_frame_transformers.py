# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Visformer, ResT and ViT with LAPS: common properties and golden outputs."""
import pytest
import torch
from backbones.families import FRAMES, outputs_of, released
from backbones.families import build as _build
from helpers import relative

from mmvidattn.backbones import ResT, Visformer, VisionTransformerLAPS
from mmvidattn.layers.temporal import FrameMixing

T = 8
BACKBONES = pytest.mark.parametrize(
    'backbone', FRAMES, ids=lambda x: x.__name__)


def _mixings(model):
    return [m for m in model.modules() if isinstance(m, FrameMixing)]


@BACKBONES
def test_pyramid_is_repeated_over_attentions(backbone):
    levels = [m.level for m in _mixings(_build(backbone, pyramid=(1, 3)))]
    want = {
        Visformer: [1, 3, 1, 3],
        # Restarts in each stage.
        ResT: [1, 1, 3, 1, 3, 1, 1],
        VisionTransformerLAPS: [1, 3, 1]
    }[backbone]
    assert levels == want


@BACKBONES
def test_options_reach_every_attention(backbone):
    model = _build(backbone, attention='3d', shift='plain',
                   shift_fraction=1 / 8, shift_first='previous')
    assert {m.extra_repr() for m in _mixings(model)} == {
        'num_frames=8, attention=3d, shift=plain, fraction=0.125, '
        'first=previous'}


def test_rest_accepts_frames_of_any_size():
    y = _build(ResT).eval()(torch.randn(1, 3, T, 70, 101))
    assert y.shape == (1, 128, T, 3, 4) and y.isfinite().all()


_VISFORMER = dict(type='Visformer', img_size=64, arch=dict(
    stem_channels=8, embed_dims=32, depths=(2, 3, 3), num_heads=2))
_VIT = dict(type='VisionTransformerLAPS', img_size=48, mlp_ratio=2, arch=dict(
    embed_dims=48, num_layers=5, num_heads=3))
# Options of the released networks by the name of the golden file.
GOLDENS = dict(
    visformer_laps=dict(_VISFORMER, pyramid=(1, 2, 3, 2, 3, 1)),
    visformer_ps=dict(_VISFORMER, attention='2d'),
    visformer_plain_shift=dict(_VISFORMER, attention='2d', shift='plain'),
    visformer_base3d=dict(_VISFORMER, attention='3d', shift='none'),
    rest_laps=dict(type='ResT', mlp_ratio=2, arch=dict(
        embed_dims=16, depths=(1, 1, 3, 1), num_heads=(1, 2, 4, 8))),
    vit_laps=_VIT,
    tokshift=dict(_VIT, attention='2d', shift='token'))


@pytest.mark.parametrize('name', GOLDENS)
def test_golden_released_model(golden, name):
    """Outputs of the released model with its converted weights."""
    g = golden(f'laps/golden_{name}.pt')
    width = g['state_dict']['base_model.head.weight'].shape[1]
    model = released(
        'laps', g['state_dict'], dict(num_frames=8, **GOLDENS[name]),
        dict(type='LAPSHead', num_classes=10, in_channels=width))
    levels = g['config'].get('pyramid_R_per_attention_layer')
    if levels is not None:
        assert [m.level for m in _mixings(model)] == levels
    clips = g['input'].transpose(1, 2)
    tolerance = 1e-4 if name == 'rest_laps' else 1e-5
    assert relative(outputs_of(model, clips)[0], g['output']) < tolerance
    frames = model.cls_head.frame_scores(model.backbone(clips))
    assert relative(frames, g['per_frame']) < tolerance
