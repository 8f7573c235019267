# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import sys
from functools import partial

import pytest
import torch
from backbones import families
from backbones.families import Image

from mmvidattn.backbones import InflatedBackbone
from mmvidattn.layers.temporal import inflated_modules

T = 4
_build = partial(families.build, InflatedBackbone)


@pytest.mark.parametrize('with_grid', [False, True])
def test_returns_features_of_frames(with_grid):
    backbone = _build()
    backbone.model.with_grid = with_grid
    clips = torch.randn(2, 3, T, 8, 12)
    y = backbone(clips)
    frames = backbone.model(clips.transpose(1, 2).flatten(0, 1))
    frames = frames[1] if with_grid else frames
    assert y.shape == (2, 8, T, *((2, 3) if with_grid else ()))
    for b in range(2):
        for t in range(T):
            assert torch.equal(y[b, :, t], frames[b * T + t])


def test_passes_options_to_inflate():
    backbone = _build(shift='plain', attention='3d', shift_fraction=1 / 8)
    assert inflated_modules(backbone) == {
        f'model.blocks.{i}.attn': 'num_frames=4, attention=3d, shift=plain, '
        'fraction=0.125, first=next' for i in (0, 1)}


def test_init_weights_follows_the_config_of_the_model():
    backbone = _build(model=dict(type=Image, init_cfg=dict(
        type='Constant', layer='Conv2d', val=2., bias=3.)))
    assert (backbone.model.embed.weight == 2).all()
    assert (backbone.model.embed.bias == 3).all()


def test_error_names_the_timm_package(monkeypatch):
    monkeypatch.setitem(sys.modules, 'timm', None)
    with pytest.raises(ImportError, match='needs timm: pip install timm'):
        InflatedBackbone('timm.x')


def test_accepts_timm_models(timm):
    backbone = InflatedBackbone('timm.vit_tiny_patch16_224', T,
                                dict(img_size=32), pyramid=(1, 2))
    assert len(inflated_modules(backbone)) == 12
    assert backbone(torch.randn(1, 3, T, 32, 32)).shape == (1, 192, T)
    assert isinstance(backbone.model, timm.models.VisionTransformer)
    with pytest.raises(ValueError, match="no model 'visformer_huge'; it has "
                                         'visformer_'):
        InflatedBackbone('timm.visformer_huge')
