# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename

# From our names to the released names of blocks with one attention.
RULES = (
    (r'\.attn_norm\.', '.norm1.'), (r'\.mlp_norm\.', '.norm2.'),
    (r'attn\.fixation\.gate', 'attn.pgate'), (r'attn\.fixation\.', 'attn.'),
    ('mlp.dwconv', 'mlp.dwconv.dwconv'), ('embed.projection', 'embed.proj'),
    ('temporal_embed', 'temp_embed'), ('^backbone', 'base_model'),
    ('cls_head.norm', 'consensus.mlp_head.0'),
    ('cls_head.fc_hidden', 'consensus.mlp_head.1'),
    ('cls_head.fc_cls', 'consensus.mlp_head.4'))


@pytest.mark.parametrize('fixation, gates', [
    (None, []), (dict(shared=True), ['pgate']),
    (dict(shared=False), ['q_gate', 'k_gate'])])
def test_joint_attention_loads(fixation, gates):
    backbone = dict(
        type='LinearVideoTransformer', pattern='joint', num_frames=8,
        arch=dict(embed_dims=32, num_layers=2, num_heads=2),
        fixation=fixation, temporal_shift=None, spatial_shift=None)
    state = MODELS.build(dict(
        type='Recognizer3D', backbone=backbone, cls_head=dict(
            type='LinearVideoTransformerHead', num_classes=7,
            in_channels=32))).state_dict()
    released = {rename(name, RULES): value for name, value in state.items()}
    assert {f'base_model.blocks.1.attn.{name}.bias' for name in (
        'qkv', *gates)} <= released.keys()
    released['base_model.temp_embed'] = released[
        'base_model.temp_embed'].flatten(2, 3)
    result = convert('linear_ff', released)
    result['backbone.temporal_embed'] = result.pop(
        'backbone.cyclic_temporal_embed')
    assert result.keys() == state.keys()
    assert all(torch.equal(result[name], state[name]) for name in state)
