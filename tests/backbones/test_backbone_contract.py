# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Contract of all backbones that are registered in MODELS.

A new backbone needs no test code: see `families.py` for its small options.
`tests/export` exports each of them.
"""
import math
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from backbones.families import OPTIONS, TINY, VARIANTS, build, clips_for
from helpers import relative
from registered import arguments_for, classes_of
from torch import nn

import mmvidattn.backbones as zoo
from mmvidattn.backbones.base import BaseBackbone

# Shapes of the features; other classes may return features of any shape.
SHAPES = {
    zoo.LinearVideoTransformer: (32, 4, 5, 5),
    zoo.XViT: (32, 4),
    zoo.ViViT: (32, ),
    zoo.DualFormer: (64, None, 2, 2),
    zoo.Visformer: (64, 8, 2, 2),
    zoo.ResT: (128, 8, 2, 2),
    zoo.VisionTransformerLAPS: (32, 8),
    zoo.VJEPA2: (32, None, 4, 4),
    zoo.InflatedBackbone: (8, 4),
}
ALL = pytest.mark.parametrize('backbone', TINY, ids=lambda x: x.__name__)
OURS = pytest.mark.parametrize(
    'backbone', [b for b in SHAPES if b is not zoo.InflatedBackbone],
    ids=lambda x: x.__name__)
EACH_VARIANT = pytest.mark.parametrize(
    'backbone, options', VARIANTS.values(), ids=VARIANTS)
EVERY_MODEL = pytest.mark.parametrize(
    'backbone, options',
    [(b, next(iter(variants.values()))) for b, variants in OPTIONS.items()] +
    [(zoo.ViViT, OPTIONS[zoo.ViViT][name])
     for name in ('encoder', 'time-space', 'dot')],
    ids=lambda x: getattr(x, '__name__', None) or x.get('model', ''))
# Parameters without effect: the norm after the softmax removes the mean of
# the weights of a head.
NO_EFFECT = ('transform_conv.bias', )


def test_backbones_are_of_the_base_class():
    """The others are a network of frames and a neck."""
    assert [cls.__name__ for cls in classes_of('backbones')
            if not issubclass(cls, BaseBackbone)] == [
                'BNInception', 'VJEPA2Predictor']


@EACH_VARIANT
def test_forward_is_finite_and_every_parameter_gets_a_gradient(backbone,
                                                               options):
    model = build(backbone, **options).train()
    clips = clips_for(model, **options)
    y = model(clips)
    assert y.isfinite().all() and len(y) == 2
    if 'patch_stride' not in options and backbone in SHAPES:
        want = SHAPES[backbone]
        assert len(y.shape) == 1 + len(want)
        assert all(w in (None, n) for w, n in zip(want, y.shape[1:]))
    (y * torch.randn_like(y)).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad is not None and p.grad.isfinite().all(), name
        if not name.endswith(NO_EFFECT):
            assert p.grad.abs().max() > 0, name
    with torch.no_grad():
        before = torch.get_rng_state()
        y = model.eval()(clips)
        # Dropout and stochastic depth act in training only.
        assert torch.equal(model(clips), y)
        assert torch.equal(torch.get_rng_state(), before)
        assert model(clips[:0]).shape == (0, *y.shape[1:])


@EVERY_MODEL
def test_gradient_checkpointing_keeps_outputs_and_gradients(backbone, options):
    model = build(backbone, **options).eval()
    again = build(backbone, **options).eval()
    again.with_cp = True
    again.load_state_dict(model.state_dict())
    assert build(backbone, **options, with_cp=True).with_cp
    blocks = [m for m in again.modules() if hasattr(m, 'mlp')]
    calls = []
    for block in blocks:
        block.mlp.register_forward_pre_hook(lambda *args: calls.append(1))
    clips = clips_for(model, **options)
    outputs = []
    for m in (model, again):
        y = m(clips)
        y.square().sum().backward()
        outputs.append([y] + [p.grad for p in m.parameters()])
    # The backward pass runs each block once more.
    assert len(calls) == 2 * len(blocks)
    assert blocks or backbone not in SHAPES
    for a, b in zip(*outputs):
        assert torch.allclose(a, b, rtol=1e-3, atol=1e-4)


# Variants that mix frames from the start.
NOTHING_ENCODED = {(zoo.InflatedBackbone, 'default'),
                   (zoo.LinearVideoTransformer, 'patches-of-3-frames')}


@pytest.mark.parametrize('backbone, name', [
    (backbone, name) for backbone, variants in OPTIONS.items()
    for name in variants if not name.startswith('drop')],
    ids=lambda x: getattr(x, '__name__', x))
def test_groups_of_frames_are_encoded_independently(backbone, name):
    """Windows of a stream can therefore share their encodings."""
    options = OPTIONS[backbone][name]
    model = build(backbone, **options).eval().double()
    clips = clips_for(model, 1, **options).double()
    groups = model.frame_groups(model.num_frames)
    if (backbone, name) in NOTHING_ENCODED or backbone not in SHAPES and (
            groups is None):
        assert groups is None
        return
    apart = {}
    with torch.no_grad():
        for group in reversed(groups):
            apart[group] = model.encode_frames(clips[:, :, list(group)])
            assert apart[group].shape[:2] == (1, 1)
        encoded = torch.cat([apart[group] for group in groups], dim=1)
        assert relative(model.forward_encoded(encoded), model(clips)) < 1e-10


@ALL
def test_clips_are_independent_and_a_checkpoint_restores_them(backbone):
    model, other = (build(backbone).double().eval() for _ in range(2))
    for value in model.state_dict().values():
        if value.is_floating_point():
            value.mul_(1 + .1 * torch.rand_like(value))
    clips = clips_for(model).double()
    with torch.no_grad():
        want = model(clips)
        apart = torch.cat([model(clip[None]) for clip in clips])
        assert torch.allclose(apart, want, atol=1e-10)
        assert not torch.allclose(other(clips), want, atol=1e-10)
        other.load_state_dict(model.state_dict(), strict=True)
        assert torch.equal(other(clips), want)


@pytest.mark.parametrize('backbone', [
    b for b in TINY if arguments_for(b, drop_path_rate=0)],
    ids=lambda x: x.__name__)
def test_drop_rates_act_in_training(backbone):
    for name in arguments_for(backbone, drop_rate=0, drop_path_rate=0):
        model = build(backbone, **{name: .7}).train()
        clips = clips_for(model, 4)
        with torch.no_grad():
            assert not torch.equal(model(clips), model(clips)), name


@EVERY_MODEL
def test_options_reach_every_layer(backbone, options):
    more = arguments_for(backbone, in_channels=5, mlp_ratio=2, qkv_bias=False,
                         drop_rate=.1, norm_eps=.5)
    if backbone is zoo.ViViT:
        more['attention'] = dict(type='SoftmaxAttention', dropout=.2)
    model = build(backbone, **{**options, **more}).eval()
    clips = clips_for(model, 1, **options)
    clips = torch.cat([clips, clips], 1)[:, :more.get('in_channels', 3)]
    assert model(clips).isfinite().all()
    for name, module in model.named_modules():
        if 'mlp_ratio' in more and name.endswith('fc1'):
            assert module.out_features == 2 * module.in_features
        if 'drop_rate' in more and isinstance(module, nn.Dropout) and (
                not name.endswith('attention.dropout')):
            assert module.p == .1, name
        if 'norm_eps' in more and isinstance(module, nn.LayerNorm):
            assert module.eps == .5, name
        if 'qkv_bias' in more and name.endswith(('.qkv', '.q', '.kv')):
            assert module.bias is None, name
        if 'attention' in more and name.endswith('attn'):
            assert .2 == (module.attn_drop_rate if 'dot' in str(options)
                          else module.attention.dropout), name


@EVERY_MODEL
def test_runs_in_bfloat16(backbone, options):
    if backbone is zoo.ResT:
        pytest.skip('the norm of its attention weights amplifies rounding')
    model = build(backbone, **options).eval()
    clips = clips_for(model)
    with torch.no_grad():
        want = model(clips)
        with torch.autocast('cpu', dtype=torch.bfloat16):
            got = model(clips).float()
        low = model.bfloat16()(clips.bfloat16()).float()
    assert relative(got, want) < 0.05 and relative(low, want) < 0.05


@pytest.mark.parametrize('backbone, options, size', [
    (zoo.LinearVideoTransformer, OPTIONS[zoo.LinearVideoTransformer]['paper'],
     dict(num_frames=8, img_size=(64, 96))),
    (zoo.XViT, {}, dict(num_frames=8, img_size=(96, 64))),
    *((zoo.ViViT, dict(model=model), dict(num_frames=12, img_size=(64, 48)))
      for model in ('joint', 'fact_encoder', 'fact_attention', 'fact_dot')),
    (zoo.Visformer, {}, dict(img_size=(96, 64))),
    (zoo.VisionTransformerLAPS, {}, dict(img_size=(96, 64)))],
    ids=lambda x: getattr(x, '__name__', None))
def test_tables_for_other_clips_are_resized_on_load(backbone, options, size):
    """Check that tables are resized linearly in time, bicubic in space."""
    model, other = (build(backbone, **{**options, **more})
                    for more in ({}, size))
    state = {name: torch.randn_like(value)
             if name in model.position_grids else value
             for name, value in model.state_dict().items()}
    other.load_state_dict(dict(state), strict=True)
    assert other.position_grids
    for name, grid in other.position_grids.items():
        # The tokens [N, C] of both tables; a class token may come before.
        table, got = ((x.movedim(1, -1) if x.dim() == 4 else x)[0].flatten(
            0, -2) for x in (state[name], other.state_dict()[name]))
        before = model.position_grids[name]
        extra = len(got) - math.prod(grid)
        assert torch.equal(got[:extra], table[:extra])
        T, H, W = before
        table = table[extra:].unflatten(0, before).permute(1, 2, 3, 0)
        if T != grid[0]:
            table = F.interpolate(table.flatten(0, 1), grid[0], mode='linear')
        table = table.reshape(H, W, -1, grid[0]).permute(3, 2, 0, 1)
        if (H, W) != grid[1:]:
            table = F.interpolate(table, grid[1:], mode='bicubic')
        want = table.movedim(1, -1).flatten(0, 2)
        assert torch.allclose(got[extra:], want, atol=1e-6), name
    for name in state.keys() - other.position_grids.keys():
        assert torch.equal(other.state_dict()[name], state[name]), name
    assert other(clips_for(other, **size)).isfinite().all()


@pytest.mark.parametrize('backbone', [zoo.LinearVideoTransformer, zoo.XViT])
@pytest.mark.parametrize('num_frames', [4, 20])
def test_cyclic_temporal_table_is_repeated_on_load(backbone, num_frames):
    model = build(backbone, num_frames=num_frames)
    state = model.state_dict()
    del state['temporal_embed']
    cycle = torch.randn(1, 8, 1, 1, 32)
    state['cyclic_temporal_embed'] = cycle
    model.load_state_dict(state, strict=True)
    for t in range(num_frames):
        assert torch.equal(model.temporal_embed[0, t], cycle[0, t % 8])


@ALL
def test_loads_start_weights_and_reports_matches(backbone, tmp_path,
                                                 monkeypatch):
    state = build(backbone).state_dict()
    prefix = 'model.' if backbone is zoo.InflatedBackbone else ''
    reshaped, *_, left_out = (name for name in state if name.endswith('.bias'))
    path = tmp_path / 'start.pth'
    torch.save({f'backbone.{name.removeprefix(prefix)}':
                value[:1] if name == reshaped else value
                for name, value in state.items() if name != left_out}, path)
    log = Mock()
    monkeypatch.setattr('mmvidattn.backbones.pretrained.print_log', log)
    model = backbone(**TINY[backbone], init_cfg=dict(
        type='Pretrained', checkpoint=str(path)))
    model.init_weights()
    loaded = model.state_dict()
    assert all(torch.equal(loaded[name], value) for name, value in
               state.items() if name not in (reshaped, left_out))
    for text in (f'starts from {path}: {len(loaded) - 2} of {len(loaded)}',
                 f'missing 1: {left_out.removeprefix(prefix)}',
                 f'of another shape 1: {reshaped.removeprefix(prefix)} (1,)'):
        assert text in log.call_args.args[0]
    torch.save(dict(conv1=torch.zeros(3)), path)
    with pytest.raises(ValueError, match='start.pth: none of its 1 tensors'):
        model.init_weights()
    model.init_cfg = dict(type='Kaiming')
    with pytest.raises(ValueError,
                       match=f"init_cfg of {backbone.__name__}.*'Kaiming'"):
        model.init_weights()


# Number of depths, and depths of some parameters.
DEPTHS = {
    (zoo.ViViT, 'joint'): (4, {
        'encoder.blocks.1.mlp.fc1.bias': 2, 'encoder.norm.bias': 3}),
    # Two blocks in space and four in time.
    (zoo.ViViT, 'fact_encoder'): (8, {
        'patch_embed.projection.weight': 0, 'encoder.pos_embed': 0,
        'encoder.cls_token': 0, 'encoder.blocks.1.mlp.fc1.weight': 2,
        'encoder.norm.weight': 2, 'encoder.temporal.pos_embed': 3,
        'encoder.temporal.blocks.0.attn.qkv.bias': 3,
        'encoder.temporal.blocks.3.attn.qkv.bias': 6,
        'encoder.temporal.norm.weight': 7}),
    (zoo.DualFormer, ''): (10, {
        'patch_embeds.0.norm.bias': 0, 'blocks.0.0.mlp.fc1.weight': 1,
        'pegs.0.dwconv.weight': 1, 'patch_embeds.1.projection.weight': 2,
        'blocks.1.1.attn.q.weight': 4, 'blocks.3.1.attn.q.weight': 8,
        'norm.weight': 9}),
    (zoo.Visformer, ''): (7, {
        'stem.0.weight': 0, 'patch_embed1.proj.weight': 0, 'pos_embed1': 0,
        'stage1.0.mlp.conv1.weight': 1, 'pos_embed2': 1,
        'stage2.1.norm1.weight': 3, 'patch_embed3.norm.bias': 3,
        'stage3.1.attn.qkv.weight': 5, 'norm.weight': 6}),
    (zoo.ResT, ''): (9, {
        'stem.conv1.weight': 0, 'stage1.0.attn.q.bias': 1,
        'patch_embed_2.conv.weight': 1, 'stage3.2.mlp.fc1.bias': 6,
        'patch_embed_4.conv.bias': 6, 'stage4.0.attn.q.bias': 7,
        'norm.weight': 8}),
    (zoo.InflatedBackbone, ''): (4, {
        'model.embed.weight': 0, 'model.blocks.0.mlp.weight': 1,
        'model.blocks.1.attn.qkv.bias': 2, 'model.norm.weight': 3}),
}


@pytest.mark.parametrize('backbone, name', [
    *DEPTHS, *((b, '') for b in TINY if b not in {x for x, _ in DEPTHS})],
                         ids=lambda x: getattr(x, '__name__', x))
def test_layer_depths(backbone, name):
    model = build(backbone, **(dict(model=name) if name else {}))
    num_depths, some = DEPTHS.get(
        (backbone, name), (len(model.layer_groups()), {}))
    depths = {
        name: model.get_layer_depth(f'backbone.{name}', 'backbone.')
        for name, _ in model.named_parameters()}
    assert {*depths.values()} == {(i, num_depths) for i in range(num_depths)}
    for name, depth in some.items():
        assert depths[name][0] == depth, name
    # Each parameter is in exactly one group.
    parts = sum(model.layer_groups(), [])
    for name in depths:
        assert sum(f'{name}.'.startswith(f'{part}.') for part in parts) == 1
    assert model.get_layer_depth('cls_head.fc_cls.weight', 'backbone.') == (
        num_depths - 1, num_depths)
    with pytest.raises(ValueError, match=f'{backbone.__name__}.*no.*blokcs'):
        model.get_layer_depth('blokcs.0.weight')


@OURS
def test_stochastic_depth_rises_linearly(backbone):
    model = build(backbone, drop_path_rate=0.7)
    rates = [block.drop_path.drop_prob for block in model.modules()
             if hasattr(block, 'drop_path')]
    want = [0.7 * i / (len(rates) - 1) for i in range(len(rates))]
    assert len(rates) > 1 and rates == pytest.approx(want)


@ALL
def test_rejects_clips_of_other_sizes(backbone):
    model = build(backbone)
    name = backbone.__name__
    if not model.any_length:
        with pytest.raises(ValueError, match=f'{name}.*num_frames='
                           f'{model.num_frames}.* 6 '):
            model(clips_for(model, num_frames=6))
    with pytest.raises(ValueError, match=rf'{name}.*\(3, '):
        model(clips_for(model)[0])


@pytest.mark.parametrize('backbone, options, found, expected', [
    (zoo.LinearVideoTransformer, OPTIONS[zoo.LinearVideoTransformer]['paper'],
     '5, 4', '4, 4'),
    (zoo.XViT, {}, '5, 4', '4, 4'),
    (zoo.ViViT, {}, '5, 4', '2, 3'),
    (zoo.Visformer, {}, '10, 8', '8, 8'),
    (zoo.VisionTransformerLAPS, {}, '5, 4', '4, 4')],
    ids=lambda x: getattr(x, '__name__', None))
def test_rejects_frames_that_do_not_fit_the_position_table(
        backbone, options, found, expected):
    model = build(backbone, **options)
    with pytest.raises(ValueError, match=(
            rf'pos_embed.* of {backbone.__name__} expects a grid of '
            rf'\({expected}\), got \({found}\); set img_size')):
        model(clips_for(model, img_size=(80, 64)))


@OURS
def test_arch_is_a_name_or_a_complete_dict(backbone):
    name, numbers = next(iter(backbone.arch_zoo.items()))
    sizes = {k: v for k, v in TINY[backbone].items()
             if k not in ('arch', *numbers)}
    with torch.device('meta'):
        first, other = (
            {k: v.shape for k, v in backbone(
                **sizes, arch=arch).state_dict().items()}
            for arch in (name, {
                'depths' if k == 'num_layers' else k: v
                for k, v in numbers.items()}))
    assert first == other
    for arch, message in (
        ('huge', f"arch must be .*{name}.*got 'huge'"),
        (dict(embed_dims=8), 'arch must be a name or have .*num_layers.*got'),
        (dict(numbers, width=8), "arch must be a name or have .*'width'"),
        *((dict(numbers, num_heads=value), 'num_heads of arch must be .*got')
          for value in (0, (1, 2), (1, 0, 1), math.nan))):
        with pytest.raises(ValueError, match=message):
            backbone(**sizes, arch=arch)


# Models, and the standard deviations of some of their initial tensors.
SMALL = dict(embed_dims=128, num_layers=1, num_heads=2, init_std=0.1)
EMBED = dict(SMALL, embed_init_std=0.3)
INITIAL_STDS = [
    (zoo.LinearVideoTransformer, dict(EMBED, num_frames=16), {
        'blocks.0.spatial_attn.qkv.weight': 0.1, 'temporal_embed': 0.3,
        'patch_embed.projection.weight': (2 / (128 * 16 * 16))**0.5,
        'blocks.0.mlp.dwconv.weight': (2 / 9)**0.5,
        'blocks.0.mlp.fc1.bias': 0}),
    (zoo.XViT, EMBED, {
        'blocks.0.attn.qkv.weight': 0.1, 'pos_embed': 0.3, 'cls_token': 0.3,
        'blocks.0.attn.qkv.bias': 0, 'temporal_embed': 0}),
    (zoo.ViViT, dict(EMBED, model='fact_encoder'), {
        'encoder.blocks.0.attn.qkv.weight': 0.1, 'encoder.pos_embed': 0.3,
        'encoder.cls_token': 0.3, 'encoder.temporal.pos_embed': 0.3,
        'encoder.blocks.0.attn.qkv.bias': 0}),
    (zoo.DualFormer, dict(
        arch=dict(TINY[zoo.DualFormer]['arch'], embed_dims=64), init_std=0.1,
        position='relative'), {
            'blocks.2.0.attn.qkv.weight': 0.1, 'blocks.2.0.attn.qkv.bias': 0,
            'blocks.2.0.attn.relative_bias': 0.02}),
]


@pytest.mark.parametrize('backbone, options, stds', INITIAL_STDS,
                         ids=lambda x: getattr(x, '__name__', ''))
def test_initialization_has_the_documented_std(backbone, options, stds):
    model = backbone(**options)
    torch.manual_seed(0)
    model.init_weights()
    for name, std in stds.items():
        tensor = model.get_parameter(name)
        if std:
            rel = 0.2 if tensor.numel() > 200 else 0.5
            assert tensor.std().item() == pytest.approx(std, rel=rel), name
        else:
            assert not tensor.any(), name
