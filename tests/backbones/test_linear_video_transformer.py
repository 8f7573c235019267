# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import copy

import pytest
import torch
import torch.nn.functional as F
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import nn

from mmvidattn.backbones import LinearVideoTransformer
from mmvidattn.convert import convert
from mmvidattn.heads import LinearVideoTransformerHead

TINY = dict(num_frames=4, embed_dims=32, num_layers=2, num_heads=2)
VARIANTS = {
    'default': {},
    'joint': dict(pattern='joint'),
    'windowed': dict(pattern='windowed', window_frames=3),
    'space-time': dict(order='space_time'),
    'paper': dict(
        patch_stride=16,
        patch_padding=0,
        img_size=64,
        with_patch_norm=False,
        with_pos_embed=True,
        with_dwconv=False,
        order='space_time',
        shift_placement='both',
        attention=dict(type='LinearAttention', kernel='relu'),
        temporal_shift=dict(mode='window', size=2, alpha=.5),
        spatial_shift=dict(mode='cross', size=1, alpha=.5)),
    'elu': dict(attention=dict(type='LinearAttention', kernel='elu+1')),
    'sigmoid': dict(attention=dict(type='LinearAttention', kernel='sigmoid')),
    'softmax': dict(attention=dict(type='SoftmaxAttention'), fixation=None),
    'separate': dict(fixation=dict(mode='separate')),
    'no-shift': dict(temporal_shift=None, spatial_shift=None),
    'no-qkv-bias': dict(qkv_bias=False),
    'patches-of-3-frames': dict(patch_frames=3),
    'dropout': dict(drop_rate=.1, drop_path_rate=.1),
}


def _build(**kwargs):
    torch.manual_seed(0)
    model = LinearVideoTransformer(**{**TINY, **kwargs})
    model.init_weights()
    # The released initialisation leaves the temporal table at zero.
    nn.init.normal_(model.temporal_embed)
    return model


@pytest.mark.parametrize('kwargs', VARIANTS.values(), ids=VARIANTS)
def test_forward_is_finite_and_every_parameter_learns(kwargs):
    model = _build(**kwargs).train()
    x = torch.randn(2, 3, 4, 64, 64)
    y = model(x)
    assert y.shape[:3] == (2, 32, 4) and y.isfinite().all()
    (y * torch.randn_like(y)).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all(), name
        assert p.grad.abs().max() > 0, name


@pytest.mark.parametrize('name', ['default', 'joint', 'paper'])
def test_checkpointing_changes_memory_only(name):
    model = _build(**VARIANTS[name])
    again = copy.deepcopy(model)
    again.with_cp = True
    x = torch.randn(1, 3, 4, 64, 64)
    grads = []
    for m in (model, again):
        m(x.requires_grad_()).square().mean().backward()
        grads.append([p.grad for p in m.parameters()])
    for a, b in zip(*grads):
        assert torch.allclose(a, b, atol=1e-6)


def test_compiles_to_the_same_output():
    model = _build().eval()
    x = torch.randn(1, 3, 4, 64, 64)
    compiled = torch.compile(model, fullgraph=True, backend='aot_eager')
    with torch.no_grad():
        assert torch.allclose(compiled(x), model(x), atol=1e-5)


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


def test_rejects_a_clip_of_another_length():
    with pytest.raises(ValueError, match='num_frames=4, got clips of 6'):
        _build()(torch.randn(1, 3, 6, 64, 64))


def test_rejects_frames_that_the_position_table_does_not_fit():
    with pytest.raises(ValueError, match=r'\(5, 5\).*\(4, 4\)'):
        _build(**VARIANTS['paper'])(torch.randn(1, 3, 4, 80, 80))


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
        LinearVideoTransformer(**TINY, **kwargs)


def test_misspelt_option_is_named():
    init_default_scope('mmaction')
    with pytest.raises(TypeError, match='fixatoin'):
        MODELS.build(dict(type='LinearVideoTransformer', fixatoin=None))


def test_temporal_table_of_another_length_is_interpolated_on_load():
    table = torch.linspace(0, 1, 4).view(1, 4, 1, 1, 1).expand(1, 4, 1, 1, 32)
    state = _build().state_dict()
    state['temporal_embed'] = table
    longer = _build(num_frames=8)
    longer.load_state_dict(state)
    want = F.interpolate(
        table[..., 0].reshape(1, 1, 4), size=8, mode='linear').flatten()
    assert torch.allclose(longer.temporal_embed[0, :, 0, 0, 3], want)


@pytest.mark.parametrize('num_frames', [4, 8, 16, 20])
def test_cyclic_temporal_table_is_repeated_on_load(num_frames):
    state = _build(num_frames=num_frames).state_dict()
    del state['temporal_embed']
    cycle = torch.randn(1, 8, 1, 1, 32)
    state['cyclic_temporal_embed'] = cycle
    model = _build(num_frames=num_frames)
    model.load_state_dict(state)
    for t in range(num_frames):
        assert torch.equal(model.temporal_embed[0, t], cycle[0, t % 8])


def test_position_table_of_another_grid_is_resized_on_load():
    options = VARIANTS['paper']
    state = _build(**options).state_dict()
    state['pos_embed'] = torch.randn(1, 1, 4, 4, 32)
    wide = _build(**{**options, 'img_size': (64, 96)})
    wide.load_state_dict(state)
    want = F.interpolate(
        state['pos_embed'][0].permute(0, 3, 1, 2), (4, 6), mode='bicubic')
    assert torch.allclose(wide.pos_embed[0].permute(0, 3, 1, 2), want)
    wide(torch.randn(1, 3, 4, 64, 96))


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
        'mmvidattn.backbones.base_video_transformer.print_log',
        lambda message, logger: reports.append(message))
    model = _build(**VARIANTS['paper'],
                   init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    own = model.state_dict()
    assert torch.equal(own['blocks.1.spatial_attn.qkv.weight'],
                       vit['blocks.1.attn.qkv.weight'])
    assert torch.equal(own['pos_embed'].flatten(1, 3), vit['pos_embed'][:, 1:])
    assert own['blocks.0.temporal_attn.qkv.weight'].std() < 0.03
    report, = reports
    assert '7 of 50 tensors' in report
    assert 'other shape: blocks.0.mlp.fc1.weight (64, 32)' in report
    assert 'not there: blocks.0.temporal_attn.qkv.weight' in report


def test_start_from_a_checkpoint_that_fits_nowhere_is_an_error(tmp_path):
    path = tmp_path / 'other.pth'
    torch.save(dict(conv1=torch.zeros(3)), path)
    with pytest.raises(ValueError, match='other.pth: none of its 1 tensors'):
        _build(init_cfg=dict(type='Pretrained', checkpoint=str(path)))


def test_layer_depth_orders_the_parameters():
    model = _build()
    depths = {
        name: model.get_layer_depth(f'backbone.{name}', 'backbone.')
        for name, _ in model.named_parameters()
    }
    assert depths['patch_embed.projection.weight'] == (0, 4)
    assert depths['temporal_embed'] == (0, 4)
    assert depths['blocks.1.mlp.fc1.weight'] == (2, 4)
    assert depths['norm.weight'] == (3, 4)


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


def test_checkpointing_computes_each_block_again():
    model, calls = _build(with_cp=True), []
    model.blocks[1].mlp_norm.register_forward_hook(
        lambda *args: calls.append(1))
    model(torch.randn(1, 3, 4, 64, 64)).sum().backward()
    assert len(calls) == 2


def test_stochastic_depth_grows_with_the_block():
    model = _build(num_layers=3, drop_path_rate=0.2)
    rates = [block.drop_path.drop_prob for block in model.blocks]
    assert rates == pytest.approx([0, 0.1, 0.2])


def test_dropout_acts_twice_in_the_mlp():
    mlp, calls = _build(drop_rate=0.5).blocks[0].mlp, []
    mlp.dropout.register_forward_hook(lambda *args: calls.append(1))
    mlp(torch.randn(1, 4, 3, 3, 32))
    assert len(calls) == 2 and mlp.dropout.p == 0.5


def test_initialisation_has_the_documented_spread():
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
