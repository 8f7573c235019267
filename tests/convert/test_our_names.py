# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Our tensors with published names are converted back."""
import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename

# From our names to the published names.
DUALFORMER = (
    ('projection', 'proj'), ('pegs', 'pos_block'), ('dwconv', 'proj.0'),
    ('attn_norm', 'norm1'), ('mlp_norm', 'norm2'),
    ('pyramid.levels.0', 'sr'), ('pyramid.levels.1.conv1', 'lr.0'),
    ('pyramid.levels.1.norm', 'lr.1'), ('pyramid.levels.1.conv2', 'lr.3'),
    ('pyramid.norm', 'norm'))
# Blocks with one attention.
LINEAR_FF = (
    (r'\.attn_norm\.', '.norm1.'), (r'\.mlp_norm\.', '.norm2.'),
    (r'attn\.fixation\.gate', 'attn.pgate'), (r'attn\.fixation\.', 'attn.'),
    ('mlp.dwconv', 'mlp.dwconv.dwconv'), ('embed.projection', 'embed.proj'),
    ('temporal_embed', 'temp_embed'), ('^backbone', 'base_model'),
    ('cls_head.norm', 'consensus.mlp_head.0'),
    ('cls_head.fc_hidden', 'consensus.mlp_head.1'),
    ('cls_head.fc_cls', 'consensus.mlp_head.4'))
# MIT's files.
TSN = (
    (r'conv(\d)\.conv\.', r'conv\1.'), (r'conv(\d)\.bn\.', r'bn\1.'),
    (r'sample\.conv\.', 'sample.0.'), (r'sample\.bn\.', 'sample.1.'),
    ('^backbone', 'module.base_model'), ('cls_head.fc_cls', 'module.new_fc'))


def linear_ff(fixation, *gates):
    return ('linear_ff', 'Recognizer3D', dict(
        type='LinearVideoTransformer', pattern='joint', num_frames=8,
        arch=dict(embed_dims=32, num_layers=2, num_heads=2),
        fixation=fixation, temporal_shift=None, spatial_shift=None),
        'LinearVideoTransformerHead', LINEAR_FF, [
            f'base_model.blocks.1.attn.{name}.bias'
            for name in ('qkv', *gates)])


def dualformer(frames):
    return ('dualformer', 'Recognizer3D', dict(
        type='DualFormer', num_frames=frames, arch=dict(
            embed_dims=32, num_layers=[2, 2, 2, 2], num_heads=[1, 2, 4, 8])),
        'I3DHead', DUALFORMER, ['backbone.blocks.0.1.attn.lr.3.weight'])


@pytest.mark.parametrize('source, kind, backbone, head, rules, some', [
    linear_ff(None), linear_ff(dict(shared=True), 'pgate'),
    linear_ff(dict(shared=False), 'q_gate', 'k_gate'),
    dualformer(16), dualformer(32),
    ('tsn_resnet', 'Recognizer2D', dict(type='ResNet', depth=50), 'TSNHead',
     TSN, [f'module.base_model.{name}' for name in (
         'conv1.weight', 'bn1.running_var', 'layer1.0.conv3.weight',
         'layer4.2.bn3.num_batches_tracked', 'layer2.0.downsample.0.weight',
         'layer2.0.downsample.1.bias')])],
    ids=['linear', 'shared', 'gates', '16 frames', '32 frames', 'tsn'])
def test_published_names_are_converted_back(source, kind, backbone, head,
                                            rules, some, recwarn):
    model = MODELS.build(dict(type=kind, backbone=backbone, cls_head=dict(
        type=head, num_classes=7, in_channels=2048 if head == 'TSNHead' else
        256 if head == 'I3DHead' else 32)))
    state = {name: torch.rand(value.shape)
             for name, value in model.state_dict().items()}
    recwarn.clear()
    published = {rename(name, rules): value for name, value in state.items()}
    assert {*some} <= published.keys()
    table = 'base_model.temp_embed'
    if table in published:
        published[table] = published[table].flatten(2, 3)
    result = {name.replace('cyclic_', ''): value
              for name, value in convert(source, published).items()}
    assert result.keys() == state.keys()
    assert all(torch.equal(result[name], state[name]) for name in state)
    # Kernels for other clips than those of our configs change the scores.
    texts = [str(warning.message) for warning in recwarn]
    assert len(texts) == (backbone.get('num_frames') == 16)
    assert not texts or 'model.backbone.num_frames=16' in texts[0]


def test_leaves_out_a_teacher_and_sinusoids():
    state = {'backbone.norm.weight': torch.ones(4),
             'teacher.backbone.norm.weight': torch.zeros(4)}
    assert convert('dualformer', state).keys() == {'backbone.norm.weight'}
    assert convert('testra', {'pos_encoding.pe': torch.zeros(1)}) == {}


@pytest.mark.parametrize('prefix', ['', 'backbone.'])
def test_image_kernels_stay_2d_and_the_second_convolution_is_a_mean(prefix):
    state = {
        f'{prefix}patch_embeds.0.proj.weight': torch.randn(4, 3, 4, 4),
        f'{prefix}blocks.1.1.attn.lr.0.bias': torch.randn(4),
        f'{prefix}blocks.1.1.attn.lr.3.weight': torch.randn(4, 1, 2, 2),
        'head.weight': torch.randn(10, 4)}
    got = convert('dualformer_2d', state)
    level = 'backbone.blocks.1.1.attn.pyramid.levels.1'
    assert got.keys() == {
        'backbone.patch_embeds.0.projection.weight', f'{level}.conv1.bias',
        f'{level}.conv2.weight', f'{level}.conv2.bias'}
    assert torch.equal(got[f'{level}.conv2.weight'], torch.ones(4, 1, 1, 1))
    assert got[f'{level}.conv2.bias'].abs().max() == 0
