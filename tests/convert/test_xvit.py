# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import torch

from mmvidattn.convert import convert

TOKENS = {
    'base_model.cls_token': torch.tensor([1., 2.]).view(1, 1, 2),
    'base_model.pos_embed': torch.arange(10.).view(1, 5, 2),
}
PATCH = {'patch_embed.proj.weight': torch.zeros(2, 3, 4, 4)}


def test_maps_names_and_leaves_out_the_unused_layer():
    names = {
        'base_model.temp_embed': 'backbone.cyclic_temporal_embed',
        'base_model.patch_embed.proj.': 'backbone.patch_embed.projection.',
        'base_model.blocks.11.attn.qkv.': 'backbone.blocks.11.attn.qkv.',
        'base_model.blocks.11.norm1.': 'backbone.blocks.11.attn_norm.',
        'base_model.blocks.11.norm2.': 'backbone.blocks.11.mlp_norm.',
        'base_model.norm.': 'backbone.norm.',
        'consensus.cls_token': 'cls_head.cls_token',
        'consensus.temporal_encoder.0.norm1.': 'cls_head.block.attn_norm.',
        'consensus.temporal_encoder.0.mlp.fc2.': 'cls_head.block.mlp.fc2.',
        'consensus.mlp_head.0.': 'cls_head.norm.',
        'consensus.mlp_head.1.': 'cls_head.fc_hidden.',
        'consensus.mlp_head.4.': 'cls_head.fc_cls.'}
    source = {old + 'bias' * old.endswith('.'): torch.zeros(1, 8, 1, 2)
              for old in names}
    out = convert('xvit', {
        **source, 'new_fc.weight': torch.zeros(1), **TOKENS})
    assert list(out) == [
        *(new + 'bias' * new.endswith('.') for new in names.values()),
        'backbone.cls_token', 'backbone.pos_embed']
    assert out['backbone.cyclic_temporal_embed'].shape == (1, 8, 1, 1, 2)


def test_first_position_is_added_to_the_class_token():
    out = convert('xvit', TOKENS)
    assert torch.equal(out['backbone.cls_token'],
                       torch.tensor([1., 3.]).view(1, 1, 1, 1, 2))
    assert torch.equal(out['backbone.pos_embed'],
                       torch.arange(2., 10.).view(1, 1, 2, 2, 2))
