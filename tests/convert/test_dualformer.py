# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename

# From our names to the released names.
RULES = (
    ('projection', 'proj'), ('pegs', 'pos_block'), ('dwconv', 'proj.0'),
    ('attn_norm', 'norm1'), ('mlp_norm', 'norm2'),
    ('pyramid.levels.0', 'sr'), ('pyramid.levels.1.conv1', 'lr.0'),
    ('pyramid.levels.1.norm', 'lr.1'), ('pyramid.levels.1.conv2', 'lr.3'),
    ('pyramid.norm', 'norm'))


def test_leaves_out_the_teacher():
    state = {'backbone.norm.weight': torch.ones(4),
             'teacher.backbone.norm.weight': torch.zeros(4)}
    assert convert('dualformer', state).keys() == {'backbone.norm.weight'}


@pytest.mark.parametrize('frames', [16, 32])
def test_warns_of_kernels_for_other_clips(frames, recwarn):
    """Kernels for other clips load, but change the scores."""
    arch = dict(embed_dims=32, num_layers=[2, 2, 2, 2],
                num_heads=[1, 2, 4, 8])
    with torch.device('meta'):
        state = MODELS.build(dict(
            type='DualFormer', arch=arch, num_frames=frames)).state_dict()
    source = {f'backbone.{rename(name, RULES)}': value
              for name, value in state.items()}
    assert convert('dualformer', source).keys() == {
        f'backbone.{name}' for name in state}
    texts = [str(warning.message) for warning in recwarn]
    assert ('model.backbone.num_frames=16' in ''.join(texts)) == (frames == 16)
    assert len(texts) == (frames == 16)


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_image_kernels_stay_2d_and_the_second_convolution_is_a_mean(prefix):
    state = {
        f'{prefix}patch_embeds.0.proj.weight': torch.randn(4, 3, 4, 4),
        f'{prefix}blocks.1.1.attn.lr.0.bias': torch.randn(4),
        f'{prefix}blocks.1.1.attn.lr.3.weight': torch.randn(4, 1, 2, 2),
        'head.weight': torch.randn(10, 4),
    }
    got = convert('dualformer_2d', state)
    level = 'backbone.blocks.1.1.attn.pyramid.levels.1'
    assert got.keys() == {
        'backbone.patch_embeds.0.projection.weight', f'{level}.conv1.bias',
        f'{level}.conv2.weight', f'{level}.conv2.bias'}
    assert torch.equal(got[f'{level}.conv2.weight'], torch.ones(4, 1, 1, 1))
    assert got[f'{level}.conv2.bias'].abs().max() == 0
