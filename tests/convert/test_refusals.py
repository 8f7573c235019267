# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Checkpoints from other sources are rejected, with the tensor's name."""
import pytest
import torch
from torch import Tensor

from mmvidattn.convert import convert

BLOCK = 'Transformer/encoderblock_0/MultiHeadDotProductAttention_0'
CLIP = 'embeddings.patch_embeddings.projection.weight'
PATCH = {'patch_embed.proj.weight': (2, 3, 4, 4)}
VIT = dict(PATCH, cls_token=(1, 1, 2))
XVIT = {f'base_model.{name}': shape for name, shape in VIT.items()}
TUBE = {'patch_embed.proj.weight': (2, 3, 2, 4, 4)}
LAPS = {'base_model.cls_token': ()}
REST = {'patch_embed_2.conv.weight': ()}
CONV = {'conv1_7x7_s2.weight': ()}
# A source, names and shapes, and a pattern of the error.
CASES = [
    ('vit', {}, "got 'vit'"),
    *(('dualformer', {name: ()}, f'{name} is not a tensor of .* DualFormer')
      for name in ('backbone.layers.0.weight', 'norm.weight',
                   'backbone.blocks.0.1.attn.lr.2.weight')),
    ('dualformer_2d', {'layers.0.weight': ()}, 'layers.0.weight'),
    ('laps', {'a': ()}, 'a is not a tensor of a released LAPS'),
    ('laps', {}, 'not a LAPS'),
    ('laps', {'base_model.a': ()}, 'not a LAPS .*base_model.cls_token among'),
    ('laps', {**LAPS, 'base_model.a': ()}, 'a is not a tensor of a vit'),
    ('visformer_timm', REST, 'not a visformer: .*patch_embed1.proj'),
    ('rest', VIT, 'not a rest: there is no patch_embed_2.conv'),
    ('laps_vit_timm', REST, 'not a vit: there is no cls_token'),
    ('rest', {**REST, 'b.weight': ()}, 'b.weight is not a tensor of a rest'),
    ('linear_ff', {'conv1.weight': ()}, 'conv1.weight is not a tensor'),
    ('mat', {'dec_query.weight': ()}, 'dec_query.weight is not .* MAT'),
    ('miniroad', {'h0': ()}, 'h0 is not a tensor of .* MiniROAD'),
    *(('lstr', {name: ()}, f'{name} is not a tensor of .* LSTR') for name in (
        'conv1.weight', 'classifier_adverb.bias', 'enc_queries.bias')),
    ('xvit', {**XVIT, 'base_model.pos_embed': (1, 5, 2), 'a.weight': ()},
     'a.weight is not a tensor'),
    ('xvit', {**XVIT, 'base_model.pos_embed': (1, 6, 2)},
     'pos_embed .* got 6'),
    ('xvit', PATCH, 'patch_embed.proj.weight is not a tensor'),
    ('xvit', {}, 'there is no base_model.cls_token'),
    ('xvit_image', {**PATCH, 'pos_embed': (1, 4, 2)}, 'there is no cls_token'),
    ('vit_timm', {'a': ()}, 'no patch_embed.proj.weight or equivalent among'),
    ('vit_timm', {**PATCH, 'pos_embed': (1, 19, 4)}, 'pos_embed .* got 19'),
    ('vivit_scenic', {'Transformer/other/kernel': (1, 1)},
     'Transformer/other/kernel is not an array of'),
    ('vivit_scenic', {f'{BLOCK}/query/kernel': (2, 1, 2)},
     r'attn.query.weight needs \S+attn.key.weight'),
    ('vivit_hf', {'a.weight': ()}, 'not a ViT of transformers'),
    ('vivit_hf', {CLIP: (), 'a.weight': ()}, 'a.weight is not a tensor'),
    ('vivit_hf', {CLIP: (), 'layers.0.attention.v_proj.bias': ()},
     r'attn.value.bias needs \S+attn.query.bias'),
    ('vivit_image', {'a.weight': ()}, 'not a ViT of timm or transformers'),
    ('vivit_image', {**PATCH, 'pos_embed': (1, 6, 2), 'cls_token': (1, 1, 2)},
     'pos_embed must have a square .* got 6'),
    ('vivit_image', {**PATCH, 'a.weight': (), 'stem.bias': ()},
     '^a.weight, stem.bias do not belong to a ViT$'),
    ('vivit_image', {**PATCH, 'blocks.1.attn.q_norm.weight': ()},
     '^blocks.1.attn.q_norm.weight do not belong to a ViT$'),
    ('vivit_image', {**PATCH, 'blocks.9.ls1.gamma': (2, )},
     'needs blocks.9.attn.proj.weight'),
    ('vivit_image', {'visual.class_embedding': (2, ), 'visual.conv1.weight':
                     (2, 3, 4, 4), 'stem.bias': (2, )},
     '^stem.bias do not belong to a ViT$'),
    ('vivit_videomae', {**TUBE, 'blocks.0.cross.weight': (2, )},
     '^blocks.0.cross.weight do not belong to a VideoMAE'),
    ('vivit_videomae', PATCH, '^not a VideoMAE'),
    ('vivit_videomae', {**TUBE, 'norm.weight': (2, ), 'fc_norm.weight': (2, )},
     'norm.weight or fc_norm.weight, got both'),
    # A TSM, whose convolutions shift.
    ('tsn_resnet', {'conv1.weight': (), 'layer1.0.conv1.net.weight': ()},
     'layer1.0.conv1.net.weight is not a tensor of a TSN on a ResNet'),
    ('bn_inception', {**CONV, 'inception_6a_1x1.weight': ()},
     'inception_6a_1x1.weight is not a tensor of BN-Inception'),
    ('bn_inception', {'fc.bias': ()}, 'there is no first convolution'),
    ('bn_inception', {**CONV, 'fc.bias': (), 'new_fc.bias': ()},
     'new_fc.bias and fc.bias are both cls_head.fc_cls.bias'),
    ('bn_inception', {**CONV, f'module.{next(iter(CONV))}': ()},
     'module.conv1_7x7_s2.weight and conv1_7x7_s2.weight are both'),
]


@pytest.mark.parametrize('source, shapes, message', CASES,
                         ids=[f'{x[0]}-{i}' for i, x in enumerate(CASES)])
def test_rejects_checkpoint_of_another_source(source, shapes, message):
    tensors: dict[str, Tensor] = {
        name: torch.zeros(shape) for name, shape in shapes.items()}
    with pytest.raises(ValueError, match=message):
        convert(source, tensors)
