# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.convert import convert

TOKENS = {
    'base_model.cls_token': torch.tensor([1., 2.]).view(1, 1, 2),
    'base_model.pos_embed': torch.arange(10.).view(1, 5, 2),
}
PATCH = {'patch_embed.proj.weight': torch.zeros(2, 3, 4, 4)}


@pytest.mark.parametrize('name, num_classes', [('ssv2', 174), ('k400', 400)])
def test_every_released_tensor_has_its_place(shared_dir, name, num_classes):
    keys = json.loads(
        (shared_dir / f'keys/linear/keys_xvit_{name}.json').read_text())
    state_dict = {
        key: torch.empty(shape, device='meta')
        for key, shape in keys.items()
    }
    init_default_scope('mmaction')
    with torch.device('meta'):
        model = MODELS.build(
            dict(
                type='Recognizer3D',
                backbone=dict(type='XViT'),
                cls_head=dict(type='XViTHead', num_classes=num_classes)))
    model.load_state_dict(
        convert('xvit', state_dict), strict=True, assign=True)


def test_names_are_mapped_and_the_unused_layer_left_out():
    block = 'base_model.blocks.11'
    encoder = 'consensus.temporal_encoder.0'
    source = {
        'base_model.temp_embed': torch.zeros(1, 8, 1, 2),
        'base_model.patch_embed.proj.bias': torch.zeros(1),
        f'{block}.attn.qkv.weight': torch.zeros(1),
        f'{block}.norm1.weight': torch.zeros(1),
        f'{block}.norm2.bias': torch.zeros(1),
        f'{block}.mlp.fc1.bias': torch.zeros(1),
        'base_model.norm.bias': torch.zeros(1),
        'consensus.cls_token': torch.zeros(1),
        f'{encoder}.norm1.bias': torch.zeros(1),
        f'{encoder}.attn.proj.bias': torch.zeros(1),
        f'{encoder}.mlp.fc2.bias': torch.zeros(1),
        'consensus.mlp_head.0.weight': torch.zeros(1),
        'consensus.mlp_head.1.weight': torch.zeros(1),
        'consensus.mlp_head.4.weight': torch.zeros(1),
        'new_fc.weight': torch.zeros(1),
        **TOKENS
    }
    block = 'backbone.blocks.11'
    out = convert('xvit', source)
    assert list(out) == [
        'backbone.cyclic_temporal_embed',
        'backbone.patch_embed.projection.bias',
        f'{block}.attn.qkv.weight',
        f'{block}.attn_norm.weight',
        f'{block}.mlp_norm.bias',
        f'{block}.mlp.fc1.bias',
        'backbone.norm.bias',
        'cls_head.cls_token',
        'cls_head.block.attn_norm.bias',
        'cls_head.block.attn.proj.bias',
        'cls_head.block.mlp.fc2.bias',
        'cls_head.norm.weight',
        'cls_head.fc_hidden.weight',
        'cls_head.fc_cls.weight',
        'backbone.cls_token',
        'backbone.pos_embed',
    ]
    assert out['backbone.cyclic_temporal_embed'].shape == (1, 8, 1, 1, 2)


def test_first_position_goes_to_the_class_token_and_the_rest_to_the_grid():
    out = convert('xvit', TOKENS)
    assert torch.equal(out['backbone.cls_token'],
                       torch.tensor([1., 3.]).view(1, 1, 1, 1, 2))
    assert torch.equal(out['backbone.pos_embed'],
                       torch.arange(2., 10.).view(1, 1, 2, 2, 2))


def test_image_vit_gives_all_but_its_classifier():
    image = {
        name.removeprefix('base_model.'): value
        for name, value in TOKENS.items()
    }
    out = convert(
        'xvit_image', {
            **image, **PATCH, 'blocks.0.norm1.bias': torch.zeros(2),
            'pre_logits.fc.weight': torch.zeros(2, 2),
            'head.weight': torch.zeros(10, 2)
        })
    assert out.keys() == {
        *(f'backbone.patch_embed.projection.{kind}'
          for kind in ('weight', 'bias')),
        'backbone.blocks.0.attn_norm.bias', 'backbone.cls_token',
        'backbone.pos_embed'
    }
    for name, value in convert('xvit', TOKENS).items():
        assert torch.equal(out[name], value)


@pytest.mark.parametrize('change, message', [
    ({'conv1.weight': torch.zeros(1)}, 'conv1.weight is no tensor of'),
    ({'base_model.pos_embed': torch.zeros(1, 6, 2)},
     'pos_embed has 6 positions: no square and a class token'),
    ({'base_model.pos_embed': torch.zeros(1, 4, 2)}, 'has 4 positions'),
], ids=['stranger', 'two-class-tokens', 'no-class-token'])
def test_names_what_is_wrong(change, message):
    with pytest.raises(ValueError, match=message):
        convert('xvit', {**TOKENS, **change})


def test_names_the_missing_class_token():
    with pytest.raises(ValueError, match='there is no cls_token among'):
        convert('xvit_image', {**PATCH, 'pos_embed': torch.zeros(1, 4, 2)})
