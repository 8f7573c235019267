# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json

import pytest
import torch
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.convert import convert


def _recognizer(num_classes, shared, **kwargs):
    init_default_scope('mmaction')
    with torch.device('meta'):
        return MODELS.build(
            dict(
                type='Recognizer3D',
                backbone=dict(
                    type='LinearVideoTransformer',
                    fixation=dict(shared=shared),
                    **kwargs),
                cls_head=dict(
                    type='LinearVideoTransformerHead',
                    num_classes=num_classes)))


@pytest.mark.parametrize('name, num_classes, shared', [('ssv2', 174, True),
                                                       ('k400', 400, False)])
def test_every_released_tensor_has_its_place(shared_dir, name, num_classes,
                                             shared):
    keys = json.loads(
        (shared_dir / f'keys/linear/keys_lvt_{name}.json').read_text())
    state_dict = {
        key: torch.empty(shape, device='meta')
        for key, shape in keys.items()
    }
    model = _recognizer(num_classes, shared)
    model.load_state_dict(
        convert('linear_ff', state_dict), strict=True, assign=True)


def test_names_are_mapped_and_the_unused_layer_left_out():
    block = 'base_model.blocks.11'
    source = {
        'base_model.temp_embed': torch.zeros(1, 8, 1, 4),
        f'{block}.attn.pgate.weight': torch.zeros(1),
        f'{block}.temporal_attn.k_gate.bias': torch.zeros(1),
        f'{block}.temporal_norm1.weight': torch.zeros(1),
        f'{block}.norm1.weight': torch.zeros(1),
        f'{block}.mlp.dwconv.dwconv.bias': torch.zeros(1),
        'consensus.mlp_head.4.weight': torch.zeros(1),
        'new_fc.weight': torch.zeros(1),
    }
    block = 'backbone.blocks.11'
    out = convert('linear_ff', source)
    assert list(out) == [
        'backbone.cyclic_temporal_embed',
        f'{block}.spatial_attn.fixation.gate.weight',
        f'{block}.temporal_attn.fixation.k_gate.bias',
        f'{block}.temporal_attn_norm.weight',
        f'{block}.spatial_attn_norm.weight',
        f'{block}.mlp.dwconv.bias',
        'cls_head.fc_cls.weight',
    ]
    assert out['backbone.cyclic_temporal_embed'].shape == (1, 8, 1, 1, 4)


@pytest.mark.parametrize('fixation, gates', [
    (None, []), (dict(shared=True), ['pgate']),
    (dict(shared=False), ['q_gate', 'k_gate'])])
def test_joint_attention_loads_strictly(fixation, gates):
    """The names of the released blocks with one attention, shapes of ours."""
    init_default_scope('mmaction')
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


def test_a_stranger_among_the_tensors_is_named():
    with pytest.raises(ValueError, match='conv1.weight is no tensor'):
        convert('linear_ff', {'conv1.weight': torch.zeros(1)})
