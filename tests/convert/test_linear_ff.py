# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.convert import convert


@pytest.mark.parametrize('fixation, gates', [
    (None, []), (dict(shared=True), ['pgate']),
    (dict(shared=False), ['q_gate', 'k_gate'])])
def test_joint_attention_loads_strictly(fixation, gates):
    """Released names of blocks with one attention, with the model's shapes."""
    with torch.device('meta'):
        model = MODELS.build(dict(
            type='Recognizer3D',
            backbone=dict(
                type='LinearVideoTransformer', pattern='joint',
                arch=dict(embed_dims=32, num_layers=2, num_heads=2),
                fixation=fixation, temporal_shift=None, spatial_shift=None),
            cls_head=dict(type='LinearVideoTransformerHead', num_classes=7,
                          in_channels=32)))
    C = 32
    shapes = {'temp_embed': (1, 8, 1, C), 'norm.weight': (C, ),
              'norm.bias': (C, ), 'patch_embed.proj.weight': (C, 3, 16, 16),
              'patch_embed.proj.bias': (C, ), 'patch_embed.norm.weight': (C, ),
              'patch_embed.norm.bias': (C, )}
    for i in range(2):
        layers = {'attn.qkv': (3 * C, C), 'attn.proj': (C, C),
                  'mlp.fc1': (4 * C, C), 'mlp.fc2': (C, 4 * C),
                  'mlp.dwconv.dwconv': (4 * C, 1, 3, 3),
                  'norm1': (C, ), 'norm2': (C, )}
        layers |= {f'attn.{gate}': (16, 48) for gate in gates}
        for name, shape in layers.items():
            shapes[f'blocks.{i}.{name}.weight'] = shape
            shapes[f'blocks.{i}.{name}.bias'] = shape[:1]
    source = {f'base_model.{k}': torch.empty(shape, device='meta')
              for k, shape in shapes.items()}
    source |= {
        f'consensus.mlp_head.{i}.{kind}': model.state_dict()[
            f'cls_head.{name}.{kind}']
        for i, name in ((0, 'norm'), (1, 'fc_hidden'), (4, 'fc_cls'))
        for kind in ('weight', 'bias')}
    model.load_state_dict(
        convert('linear_ff', source), strict=True, assign=True)
