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


def test_a_stranger_among_the_tensors_is_named():
    with pytest.raises(ValueError, match='conv1.weight is no tensor'):
        convert('linear_ff', {'conv1.weight': torch.zeros(1)})
