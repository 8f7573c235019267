# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Visformer, ResT and ViT with LAPS, and inflated networks."""
import sys

import pytest
import torch
from backbones.families import FRAMES, Image, build, outputs_of, released
from helpers import relative

import mmvidattn.backbones as zoo
from mmvidattn.layers.temporal import FrameMixing, inflated_modules

T = 8
BACKBONES = pytest.mark.parametrize(
    'backbone', FRAMES, ids=lambda x: x.__name__)


def _mixings(model):
    return [m for m in model.modules() if isinstance(m, FrameMixing)]


@BACKBONES
def test_pyramid_is_repeated_over_attentions(backbone):
    levels = [m.level for m in _mixings(build(backbone, pyramid=(1, 3)))]
    want = {
        zoo.Visformer: [1, 3, 1, 3],
        # Restarts in each stage.
        zoo.ResT: [1, 1, 3, 1, 3, 1, 1],
        zoo.VisionTransformerLAPS: [1, 3, 1]
    }[backbone]
    assert levels == want


@BACKBONES
def test_options_reach_every_attention(backbone):
    model = build(backbone, attention='3d', shift='plain',
                  shift_fraction=1 / 8, shift_first='previous')
    assert {m.extra_repr() for m in _mixings(model)} == {
        'num_frames=8, attention=3d, shift=plain, fraction=0.125, '
        'first=previous'}


def test_rest_accepts_frames_of_any_size():
    y = build(zoo.ResT).eval()(torch.randn(1, 3, T, 70, 101))
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


@pytest.mark.parametrize('with_grid', [False, True])
def test_returns_features_of_frames(with_grid):
    backbone = build(zoo.InflatedBackbone)
    backbone.model.with_grid = with_grid
    clips = torch.randn(2, 3, 4, 8, 12)
    y = backbone(clips)
    frames = backbone.model(clips.transpose(1, 2).flatten(0, 1))
    frames = frames[1] if with_grid else frames
    assert y.shape == (2, 8, 4, *((2, 3) if with_grid else ()))
    for b in range(2):
        for t in range(4):
            assert torch.equal(y[b, :, t], frames[b * 4 + t])


def test_passes_options_to_inflate():
    backbone = build(
        zoo.InflatedBackbone, shift='plain', attention='3d',
        shift_fraction=1 / 8)
    assert inflated_modules(backbone) == {
        f'model.blocks.{i}.attn': 'num_frames=4, attention=3d, shift=plain, '
        'fraction=0.125, first=next' for i in (0, 1)}


def test_init_weights_follows_the_config_of_the_model():
    init = dict(type='Constant', layer='Conv2d', val=2., bias=3.)
    backbone = build(
        zoo.InflatedBackbone, model=dict(type=Image, init_cfg=init))
    assert (backbone.model.embed.weight == 2).all()
    assert (backbone.model.embed.bias == 3).all()


def test_error_names_the_timm_package(monkeypatch):
    monkeypatch.setitem(sys.modules, 'timm', None)
    with pytest.raises(ImportError, match='needs timm: pip install timm'):
        zoo.InflatedBackbone('timm.x')


def test_accepts_timm_models(timm):
    backbone = zoo.InflatedBackbone(
        'timm.vit_tiny_patch16_224', 4, dict(img_size=32), pyramid=(1, 2))
    assert len(inflated_modules(backbone)) == 12
    assert backbone(torch.randn(1, 3, 4, 32, 32)).shape == (1, 192, 4)
    assert isinstance(backbone.model, timm.models.VisionTransformer)
    with pytest.raises(ValueError, match="no model 'visformer_huge'; it has "
                                         'visformer_'):
        zoo.InflatedBackbone('timm.visformer_huge')
