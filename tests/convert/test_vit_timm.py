# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch

from mmvidattn.convert import convert

PATCH = {'patch_embed.proj.weight': torch.zeros(4, 3, 16, 16)}


def test_keeps_what_a_video_transformer_has():
    out = convert(
        'vit_timm', {
            **PATCH, 'cls_token': torch.zeros(1, 1, 4),
            'pos_embed': torch.arange(17 * 4.).view(1, 17, 4),
            'blocks.0.norm2.bias': torch.zeros(4),
            'norm.weight': torch.zeros(4),
            'head.weight': torch.zeros(10, 4)
        })
    assert set(out) == {
        'backbone.patch_embed.projection.weight',
        'backbone.patch_embed.projection.bias', 'backbone.pos_embed',
        'backbone.blocks.0.mlp_norm.bias', 'backbone.norm.weight'
    }
    assert out['backbone.pos_embed'].shape == (1, 1, 4, 4, 4)
    assert out['backbone.pos_embed'].flatten()[0] == 4


def test_rejects_what_is_no_vit():
    with pytest.raises(ValueError, match='no patch_embed.proj.weight among a'):
        convert('vit_timm', {'a': torch.zeros(1)})


def test_rejects_positions_that_form_no_square():
    with pytest.raises(ValueError, match='pos_embed has 19 positions'):
        convert('vit_timm', {**PATCH, 'pos_embed': torch.zeros(1, 19, 4)})
