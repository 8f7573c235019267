# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import partial

import pytest
import torch
from backbones.families import OPTIONS, TINY, build
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope

from mmvidattn.backbones import LinearVideoTransformer
from mmvidattn.convert import convert
from mmvidattn.heads import LinearVideoTransformerHead

_build = partial(build, LinearVideoTransformer)


def test_default_has_the_parameters_of_the_released_model():
    with torch.device('meta'):
        model = LinearVideoTransformer()
        head = LinearVideoTransformerHead(174)
        bare = LinearVideoTransformer(fixation=None)

    def count(*modules):
        # The released table has 8 embeddings; its head an unused layer.
        return sum(p.numel() for m in modules for p in m.parameters()) \
            - 8 * 512 + 513 * 174

    assert round(count(model, head) / 1e6, 3) == 52.009
    assert round(count(bare, head) / 1e6, 3) == 51.712


@pytest.mark.parametrize('side', [64, 70, (64, 96)])
def test_takes_any_resolution(side):
    height, width = (side, side) if isinstance(side, int) else side
    y = _build()(torch.randn(1, 3, 4, height, width))
    assert y.shape[-2:] == (height // 14 + 1, width // 14 + 1)


@pytest.mark.parametrize('kwargs, message', [
    (dict(pattern='axial'), "'factorized', 'joint', 'windowed'.*'axial'"),
    (dict(order='random'), "'time_space', 'space_time'.*'random'"),
    (dict(shift_placement='q'), "'complementary', 'both'.*'q'"),
    (dict(window_frames=2), 'window_frames'),
    (dict(patch_frames=2), 'patch_frames must be an odd number, got 2'),
    (dict(pattern='windowed'), 'window_frames'),
    (dict(fixation=dict(mode='x')), "'separate', 'cooperative'.*'x'"),
    (dict(temporal_shift=dict(mode='x', divisor=4)), "'tsm'.*'x'"),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        LinearVideoTransformer(
            **{**TINY[LinearVideoTransformer], **kwargs})


def test_patches_of_one_frame_become_the_middle_of_three():
    one, three = _build(), _build(patch_frames=3)
    three.load_state_dict(one.state_dict())
    x = torch.randn(1, 3, 4, 64, 64)
    assert torch.allclose(one(x), three(x), atol=1e-5)


def test_starts_from_an_image_vit_and_reports_what_matched(
        tmp_path, monkeypatch):
    vit = dict(cls_token=torch.randn(1, 1, 32), pos_embed=torch.randn(
        1, 17, 32))
    vit['patch_embed.proj.weight'] = torch.randn(32, 3, 16, 16)
    vit['patch_embed.proj.bias'] = torch.randn(32)
    vit['head.weight'] = torch.randn(10, 32)
    for i in range(2):
        vit[f'blocks.{i}.norm1.weight'] = torch.randn(32)
        vit[f'blocks.{i}.attn.qkv.weight'] = torch.randn(96, 32)
        vit[f'blocks.{i}.mlp.fc1.weight'] = torch.randn(64, 32)
    path = tmp_path / 'vit.pth'
    torch.save(dict(state_dict=convert('vit_timm', vit)), path)
    reports = []
    monkeypatch.setattr(
        'mmvidattn.backbones.base.print_log',
        lambda message, logger: reports.append(message))
    model = _build(**OPTIONS[LinearVideoTransformer]['paper'],
                   init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    own = model.state_dict()
    assert torch.equal(own['blocks.1.spatial_attn.qkv.weight'],
                       vit['blocks.1.attn.qkv.weight'])
    assert torch.equal(own['pos_embed'].flatten(1, 3), vit['pos_embed'][:, 1:])
    assert own['blocks.0.temporal_attn.qkv.weight'].std() < 0.03
    report, = reports
    assert '9 of 50 tensors' in report
    assert 'other shape: blocks.0.mlp.fc1.weight (64, 32)' in report
    assert 'not there: blocks.0.temporal_attn.qkv.weight' in report


GOLDEN_OPTIONS = {
    'shared_eight_s1_div4': {},
    'shared_cross_s1_div4': dict(spatial_shift=dict(mode='cross', divisor=8)),
    'nogate_noshift': dict(
        fixation=None, temporal_shift=None, spatial_shift=None),
    'softmax_nogate': dict(
        fixation=None,
        attention=dict(type='SoftmaxAttention'),
        spatial_shift=dict(mode='cross', divisor=8)),
}


@pytest.mark.parametrize('case', GOLDEN_OPTIONS)
def test_golden_released_model(golden, case):
    """The authors' model, its weights through ``convert``, strictly."""
    init_default_scope('mmaction')
    G = golden('linear/golden_lvt.pt')
    g, clip = G[case], G['_input']
    dims = g['meta']['dims']
    model = MODELS.build(
        dict(
            type='Recognizer3D',
            backbone=dict(
                type='LinearVideoTransformer',
                num_frames=8,
                embed_dims=dims['embed_dim'],
                num_layers=dims['depth'],
                num_heads=dims['num_heads'],
                **GOLDEN_OPTIONS[case]),
            cls_head=dict(
                type='LinearVideoTransformerHead',
                num_classes=7,
                in_channels=32,
                hidden_dims=24))).eval()
    model.load_state_dict(convert('linear_ff', g['state_dict']), strict=True)
    taps = {}
    for i, block in enumerate(model.backbone.blocks):
        block.register_forward_hook(
            lambda m, args, out, i=i: taps.update({f'block{i}': out}))
    with torch.no_grad():
        y = model(clip[:, None], mode='tensor', stage='head')
    assert (y - g['output']).norm() < 1e-5 * g['output'].norm()
    for name, tap in g['taps'].items():
        got = taps[name].flatten(0, 1).flatten(1, 2)
        assert (got - tap).norm() < 1e-5 * tap.norm()


def test_dropout_acts_twice_in_the_mlp():
    mlp, calls = _build(drop_rate=0.5).blocks[0].mlp, []
    mlp.dropout.register_forward_hook(lambda *args: calls.append(1))
    mlp(torch.randn(1, 4, 3, 3, 32))
    assert len(calls) == 2 and mlp.dropout.p == 0.5


def test_initialization_has_the_documented_spread():
    model = LinearVideoTransformer(
        num_frames=16, embed_dims=128, num_layers=1, num_heads=2,
        init_std=0.1, embed_init_std=0.3)
    model.init_weights()
    block = model.blocks[0]
    for tensor, std in ((block.spatial_attn.qkv.weight, 0.1),
                        (model.temporal_embed, 0.3),
                        (model.patch_embed.projection.weight,
                         (2 / (128 * 16 * 16))**0.5),
                        (block.mlp.dwconv.weight, (2 / 9)**0.5)):
        assert tensor.std().item() == pytest.approx(std, rel=0.1)
    assert block.mlp.fc1.bias.abs().max() == 0
