# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import re

import pytest
import torch

from mmvidattn.convert import convert

VISFORMER = {
    'patch_embed1.proj.weight': torch.zeros(4, 2, 4, 4),
    'stem.1.weight': torch.zeros(2),
    'stage2.0.norm1.weight': torch.zeros(8),
    'stage2.0.attn.qkv.weight': torch.arange(24 * 8.).view(24, 8, 1, 1),
    'stage2.0.mlp.conv1.weight': torch.zeros(32, 8, 1, 1),
    'head.weight': torch.zeros(5, 16)
}
REST = {
    'patch_embed_2.conv.weight': torch.zeros(4, 2, 3, 3),
    'stem.norm1.weight': torch.zeros(2),
    'stage1.0.norm1.weight': torch.zeros(4),
    'stage1.0.norm2.bias': torch.zeros(4),
    'stage1.0.attn.proj.weight': torch.zeros(4, 4),
    'head.bias': torch.zeros(5)
}
VIT = {
    'cls_token': torch.zeros(1, 1, 4),
    'patch_embed.proj.bias': torch.zeros(4),
    'blocks.1.norm2.weight': torch.zeros(4),
    'pre_logits.fc.weight': torch.zeros(4),
    'head.weight': torch.zeros(5, 4)
}
NAMES = ['patch_embed1.proj.weight', 'stem.1.weight', 'stage2.0.norm1.weight',
         'stage2.0.attn.qkv.weight', 'stage2.0.mlp.conv1.weight']
OURS = {
    'visformer_timm': (VISFORMER, NAMES),
    # The authors' norms are in a submodule.
    'visformer_s_in10k': ({
        re.sub(r'(stem\.1|norm1)', r'\1.bn', name): value
        for name, value in VISFORMER.items()}, NAMES),
    'rest': (REST, [
        'patch_embed_2.conv.weight', 'stem.norm1.weight',
        'stage1.0.attn_norm.weight', 'stage1.0.mlp_norm.bias',
        'stage1.0.attn.proj.weight']),
    'laps_vit_timm': (VIT, [
        'cls_token', 'patch_embed.projection.bias',
        'blocks.1.mlp_norm.weight']),
}


@pytest.mark.parametrize('source', OURS)
def test_image_models_are_converted_without_classifier(source):
    tensors, names = OURS[source]
    out = convert(source, tensors)
    assert list(out) == [f'backbone.{name}' for name in names]


@pytest.mark.parametrize('columns, warns', [(28, False), (40, True),
                                            (45, False)])
def test_warns_of_an_unknown_shift(columns, warns, recwarn):
    """At 320 x 320, B and L shift 1/8 of the channels, and H 1/4."""
    tensors = {f'module.base_model.{name}': value
               for name, value in VISFORMER.items()}
    tensors['module.base_model.pos_embed1'] = torch.zeros(
        1, 4, columns, columns)
    convert('laps', tensors)
    messages = [str(warning.message) for warning in recwarn]
    assert bool(messages) == warns
    if warns:
        assert 'laps_visformer_b_v1_k400' in messages[0]
