# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Networks of the LAPS configs; another file tests the recipes."""
import pytest
import torch
from config_cache import load_config
from mmaction.registry import MODELS

from mmvidattn.apis import list_models


@pytest.mark.parametrize('name', list_models('laps_*', ablations=True))
def test_head_channels_match_the_backbone(name):
    with torch.device('meta'):
        backbone = MODELS.build(load_config(name).model.backbone)
    assert backbone.norm.weight.numel() == load_config(
        name).model.cls_head.in_channels


@pytest.mark.parametrize('name, attention, shift', [
    ('visformer_k400', 'leap', 'periodic'),
    ('visformer_base2d_k400', '2d', 'none'),
    ('visformer_base3d_k400', '3d', 'none'),
    ('table01_plain_shift', '2d', 'plain'),
    ('table01_periodic_shift', '2d', 'periodic'),
    ('table01_leap', 'leap', 'none'),
    ('rest_s_k400', 'leap', 'periodic'), ('vit_k400', 'leap', 'periodic'),
    ('table03_rest_s_base2d', '2d', 'none'),
    ('table03_vit_base2d', '2d', 'none'),
    ('tokshift_k400', '2d', 'token'), ('table04_tokshift_mr', '2d', 'token'),
    ('table04_vit_8x32', '2d', 'none'),
    ('table05_vit_ucf101', '2d', 'none'),
    ('table05_tokshift_ucf101', '2d', 'token'),
    ('table06_vit_egtea', '2d', 'none'),
    ('table06_tokshift_egtea', '2d', 'token'),
    ('tiny_motion', 'leap', 'periodic')])
def test_has_the_named_attention_and_shift(name, attention, shift):
    backbone = load_config(f'laps_{name}').model.backbone
    assert (backbone.attention, backbone.shift) == (attention, shift)


@pytest.mark.parametrize('name', [
    'visformer_b', 'visformer_l', 'table02_r1', 'table02_r2', 'table02_r3'])
def test_older_version_differs_in_the_shift_fraction_only(name):
    v2 = f'laps_{name}_k400' if 'visformer' in name else f'laps_{name}'
    v1 = f'laps_{name}_v1_k400' if 'visformer' in name else f'laps_{name}_v1'
    want = load_config(v2).model.to_dict()
    want['backbone']['shift_fraction'] = 1 / 8
    assert load_config(v1).model.to_dict() == want


@pytest.mark.parametrize('name, pyramid', [
    ('visformer_k400', (1, 2, 3)), ('visformer_l_k400', (1, 2, 3, 4)),
    ('visformer_h_k400', (1, 2, 3, 4, 5)), ('table02_r1', (1, )),
    ('table02_r2', (2, )), ('table02_r3', (3, )), ('rest_b_k400', (1, 2, 3)),
    ('rest_l_k400', (1, 2, 3, 4)), ('vit_k400', (1, 2, 3, 1))])
def test_has_the_released_pyramid_and_fraction(name, pyramid):
    backbone = load_config(f'laps_{name}').model.backbone
    assert tuple(backbone.pyramid) == pyramid
    assert backbone.shift_first == 'next'
    assert backbone.shift_fraction == (1 / 8 if 'rest' in name else 1 / 4)
