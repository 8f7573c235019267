# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math
import warnings
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from backbones.families import TINY, build
from mmaction.models.heads import I3DHead
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import nn

import mmvidattn.layers.local_window_attention as local_window_attention
from mmvidattn.backbones import DualFormer
from mmvidattn.convert import convert
from mmvidattn.layers import GlobalPyramidAttention, LocalWindowAttention
from mmvidattn.utils.complexity import count_complexity

ARCH = TINY[DualFormer]['arch']
_build = partial(build, DualFormer)


def _clips(frames=8, height=64, width=64, batch=2):
    torch.manual_seed(1)
    return torch.randn(batch, 3, frames, height, width)


@pytest.mark.parametrize('frames, height, width', [
    (24, 256, 320), (32, 112, 112), (1, 30, 50), (7, 224, 100)])
def test_takes_sizes_that_the_released_code_refuses(frames, height, width):
    """With the kernels of the released checkpoints."""
    torch.manual_seed(0)
    model = DualFormer(ARCH).train()
    # BatchNorm of a single value would fail.
    batch = 2 if frames == 1 else 1
    y = model(_clips(frames, height, width, batch))
    assert y.shape == (batch, 64, -(-frames // 2), -(-height // 32),
                       -(-width // 32))
    (y * torch.randn_like(y)).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad.isfinite().all() and p.grad.abs().max() > 0, name


def test_padding_changes_nothing_at_the_released_size(monkeypatch):
    """Bit-equal to windows that are cut without it, forward and backward."""
    torch.manual_seed(0)
    model = DualFormer(ARCH).train()
    clips = _clips(32, 224, 224, batch=1)

    def plain(x, window):
        B, T, H, W, C = x.shape
        t, h, w = window
        x = x.reshape(B, T // t, t, H // h, h, W // w, w, C)
        x = x.permute(0, 1, 3, 5, 2, 4, 6, 7)
        return x.reshape(B, -1, t * h * w, C), None

    results = []
    for _ in range(2):
        y = model(clips)
        results.append([y.detach(), *torch.autograd.grad(
            y.square().sum(), list(model.parameters()))])
        monkeypatch.setattr(local_window_attention, 'window_partition', plain)
        monkeypatch.setattr(local_window_attention, 'fit_window',
                            lambda window, grid: window)
    for a, b in zip(*results):
        assert torch.equal(a, b)


def test_what_fills_up_a_window_is_not_seen(monkeypatch):
    model = _build(pattern=('LL', ) * 4, position='none',
                   window_size=(3, 3, 5)).eval()
    clips = _clips()
    with torch.no_grad():
        want = model(clips)
        cut = local_window_attention.window_partition

        def spoilt(x, window):
            windows, mask = cut(x, window)
            if mask is not None:
                windows = windows.masked_fill(~mask[None, ..., None], 1e3)
            return windows, mask

        monkeypatch.setattr(local_window_attention, 'window_partition',
                            spoilt)
        assert torch.equal(model(clips), want)


def _ln(x, norm):
    return F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, 1e-5)


def _by_hand(model, x):
    """Clips [B, C, T, H, W]; the attentions have tests of their own."""
    for embed, blocks, peg in zip(model.patch_embeds, model.blocks,
                                  model.pegs):
        conv = embed.projection
        x = F.conv3d(x, conv.weight, conv.bias, conv.weight.shape[2:])
        x = _ln(x.movedim(1, -1), embed.norm)
        for j, block in enumerate(blocks):
            kinds = LocalWindowAttention, GlobalPyramidAttention
            assert type(block.attn) is kinds[j % 2]
            x = x + block.attn(_ln(x, block.attn_norm))
            y = F.gelu(block.mlp.fc1(_ln(x, block.mlp_norm)))
            x = x + block.mlp.fc2(y)
            if j == 0:
                x = x + F.conv3d(
                    x.movedim(-1, 1), peg.dwconv.weight, peg.dwconv.bias,
                    padding=1, groups=x.shape[-1]).movedim(1, -1)
        x = x.movedim(-1, 1)
    return _ln(x.movedim(1, -1), model.norm).movedim(-1, 1)


def test_matches_a_network_written_out():
    arch = dict(ARCH, num_layers=(2, 3, 1, 2))
    model = _build(arch=arch).double().eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    clips = _clips().double()
    with torch.no_grad():
        want = _by_hand(model, clips)
        assert (model(clips) - want).norm() < 1e-10 * want.norm()


def test_options_reach_every_layer():
    model = _build(in_channels=5, mlp_ratio=2, qkv_bias=False, drop_rate=.1)
    assert model.patch_embeds[0].projection.in_channels == 5
    for blocks in model.blocks:
        local, pyramid = (block.attn for block in blocks)
        for layer in (local.qkv, pyramid.q, pyramid.kv):
            assert layer.bias is None
        for block in blocks:
            assert block.mlp.fc1.out_features == 2 * block.mlp.fc1.in_features
            assert block.mlp.dropout.p == .1


def test_global_attention_reaches_every_pixel():
    model = _build().double().eval()
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    clips = _clips(batch=1).double().requires_grad_()
    grad, = torch.autograd.grad(model(clips)[0, :, 0, 0, 0].sum(), clips)
    assert (grad.abs().amax((0, 1)) > 0).all()


@pytest.mark.parametrize('arch, mparams, gmacs', [
    ('tiny', 21.77, 60.09), ('small', 48.91, 158.69),
    ('base', 86.84, 267.97)])
def test_has_the_size_and_cost_of_the_released_model(arch, mparams, gmacs):
    with torch.device('meta'):
        backbone = DualFormer(arch)
        width = backbone.norm.weight.numel()
        model = nn.Sequential(backbone, I3DHead(400, width))
        clips = torch.empty(1, 3, 32, 224, 224)
    count = count_complexity(model, clips)
    norms = []
    for module in model.modules():
        # fvcore, which the paper used, counts five an element of a layer
        # norm and two of a batch norm.
        for kind, cost in ((nn.LayerNorm, 5), (nn.BatchNorm3d, 2)):
            if isinstance(module, kind):
                module.register_forward_hook(
                    lambda m, args, out, cost=cost: norms.append(
                        cost * out.numel()))
    model(clips)
    params = sum(p.numel() for p in backbone.parameters())
    assert round(params / 1e6, 2) == mparams
    assert round((count.macs + sum(norms)) / 1e9, 2) == gmacs
    assert not count.uncounted


@pytest.mark.parametrize('arch', ['tiny', 'small', 'base'])
def test_golden_drop_path(arch, shared_dir):
    want = json.loads((shared_dir / 'goldens/dualformer/drop_path.json'
                       ).read_text())[f'dualformer_{arch}']
    rate = dict(tiny=0.1, small=0.2, base=0.3)[arch]
    with torch.device('meta'):
        model = DualFormer(arch, drop_path_rate=rate)
    got = [block.drop_path.drop_prob
           for blocks in model.blocks for block in blocks]
    assert got == pytest.approx(want, abs=1e-6)


@pytest.mark.parametrize('size', ['tiny', 'tiny_16f_ucf101'])
def test_golden_kernels(size, shared_dir):
    want = json.loads((shared_dir / 'goldens/dualformer/gp_kernels.json'
                       ).read_text())[f'dualformer_{size}']
    with torch.device('meta'):
        model = DualFormer(num_frames=16 if '16f' in size else 32)
    for i, stage in enumerate(want.values()):
        levels = model.blocks[i][1].attn.pyramid.levels
        kernels = [getattr(level, 'kernel_size', None) for level in levels]
        if not stage['has_sr'] or math.prod(stage['fine_kernel']) < 2:
            assert not kernels
            continue
        assert list(kernels[0]) == stage['fine_kernel']
        coarse = stage['coarse'] or []
        assert len(levels) == 1 + len(coarse)
        for level, (first, second) in zip(list(levels)[1:], coarse):
            assert list(level.conv1.kernel_size) == first
            assert list(level.conv2.kernel_size) == second


@pytest.mark.parametrize('kwargs, message', [
    (dict(patch_size=(2, 4)), r'patch_size must be .*an integer.*\(2, 4\)'),
    (dict(pyramid_sizes=(((8, 7), ), (), (), ())), r'pyramid_sizes.*\(8, 7\)'),
    (dict(pyramid_sizes=((8, 7, 7), (), (), ())),
     r'pyramid_sizes.*got \(\(8, 7, 7'),
    (dict(drop_path_rate=1.), 'drop_path_rate.*got 1.0'),
    (dict(pattern=('LG', 'LG', 'LG')), "pattern must be 4 of .*'LG', 'LL'"),
    (dict(pattern=('LG', 'GL', 'LG', 'LG')), "pattern.*'GL'"),
    (dict(pooling='max'), "pooling.*'dwconv', 'conv', 'avg'.*'max'"),
    (dict(position='sine'), "position.*'relative', 'none'.*'sine'"),
    (dict(temporal_pooling=(1, 1)), r'temporal_pooling.*got \(1, 1\)'),
    (dict(temporal_pooling=(1, 0, 1)), 'temporal_pooling.*3 positive'),
    (dict(pyramid_sizes=((), )), 'pyramid_sizes.*4 stages'),
    (dict(window_size=(8, 7)), r'window_size.*\(8, 7\)'),
    (dict(arch=dict(ARCH, num_heads=(3, 1, 1, 1))), 'embed_dims=8.*heads=3'),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(**kwargs)


def test_initialization_has_the_documented_spread():
    model = DualFormer(
        dict(ARCH, embed_dims=64), init_std=0.1, position='relative')
    convolution = model.patch_embeds[1].projection.weight.clone()
    model.init_weights()
    block = model.blocks[2][0]
    for tensor, std in ((block.attn.qkv.weight, 0.1),
                        (block.attn.relative_bias, 0.02)):
        assert tensor.std().item() == pytest.approx(std, rel=0.2)
    assert block.attn.qkv.bias.abs().max() == 0
    assert torch.equal(model.patch_embeds[1].projection.weight, convolution)


@pytest.mark.parametrize('frames', [4, 8, 12, 16, 32])
def test_kernels_of_other_clips_mean_the_same_of_a_still_video(frames):
    """The sum of a kernel stays, whatever its size."""
    state = DualFormer(ARCH).state_dict()
    model = DualFormer(ARCH, num_frames=frames)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter('always')
        model.load_state_dict(state)
    # Nobody loads another model without a word.
    assert len(said) == (frames != 32)
    assert all('of its kernels are resized: blocks.0.1.attn.pyramid' in
               str(w.message) for w in said)
    for name, value in model.state_dict().items():
        if value.dim() == 5 and not name.startswith('pegs'):
            assert torch.allclose(
                value.sum((2, 3, 4)), state[name].sum((2, 3, 4)), rtol=1e-4,
                atol=1e-5), name
    own = model.blocks[0][1].attn.pyramid.levels[0].weight
    assert own.shape[2] == max(frames // 2 // 8, 1)


@pytest.mark.filterwarnings('ignore:the checkpoint is of a DualFormer')
def test_halved_kernels_are_sums_of_pairs():
    state = DualFormer(ARCH).state_dict()
    model = DualFormer(ARCH, num_frames=16)
    model.load_state_dict(state)
    name = 'blocks.0.1.attn.pyramid.levels.1.conv2.weight'
    was, now = state[name], model.state_dict()[name]
    assert was.shape[2:] == (4, 2, 2) and now.shape[2:] == (2, 2, 2)
    assert torch.allclose(now, was[:, :, ::2] + was[:, :, 1::2])


def test_image_model_says_of_a_still_video_what_it_says_of_a_frame(tmp_path):
    """Its patches, positions and priors, for any number of frames."""
    image = {
        'patch_embeds.0.proj.weight': torch.randn(8, 3, 4, 4),
        'pos_block.0.proj.0.weight': torch.randn(8, 1, 3, 3),
        'blocks.0.1.attn.sr.weight': torch.randn(8, 1, 8, 8),
        'blocks.0.1.attn.lr.0.weight': torch.randn(8, 1, 7, 7),
        'blocks.0.1.attn.lr.0.bias': torch.randn(8),
        'head.weight': torch.randn(10, 64),
    }
    path = tmp_path / 'image.pth'
    torch.save(dict(state_dict=convert('dualformer_2d', image)), path)
    for frames in (16, 32, 48):
        model = DualFormer(ARCH, num_frames=frames, init_cfg=dict(
            type='Pretrained', checkpoint=str(path)))
        model.init_weights()
        own = model.state_dict()
        for ours, theirs in (
            ('patch_embeds.0.projection', 'patch_embeds.0.proj'),
            ('pegs.0.dwconv', 'pos_block.0.proj.0'),
            ('blocks.0.1.attn.pyramid.levels.0', 'blocks.0.1.attn.sr'),
            ('blocks.0.1.attn.pyramid.levels.1.conv1',
             'blocks.0.1.attn.lr.0')):
            assert torch.allclose(own[f'{ours}.weight'].sum(2),
                                  image[f'{theirs}.weight'], atol=1e-5)
        mean = own['blocks.0.1.attn.pyramid.levels.1.conv2.weight']
        assert torch.allclose(mean, torch.full_like(
            mean, 1 / mean[0].numel()))


def from_released(config, head=None):
    """Our recognizer, by the options of the released one."""
    backbone = dict(
        type='DualFormer',
        arch=dict(
            embed_dims=config['embed_dims'][0],
            num_layers=tuple(config['depths']),
            num_heads=tuple(config['num_heads'])),
        num_frames=config['video_size'][0],
        img_size=tuple(config['video_size'][1:]),
        patch_size=tuple(config['patch_size']),
        window_size=config['local_sizes'],
        pyramid_sizes=[
            [fine, coarse] if i < 2 else [fine]
            for i, (fine, coarse) in enumerate(
                zip(config['fine_pysizes'], config['coarse_pysizes']))])
    return dict(
        type='Recognizer3D',
        backbone=backbone,
        cls_head=head or dict(
            type='I3DHead', num_classes=config['head_num_classes'],
            in_channels=backbone['arch']['embed_dims'] * 8))


def load_released(g, **backbone):
    init_default_scope('mmaction')
    cfg = from_released(g['config'])
    if any('token_linear' in name for name in g['state_dict']):
        cfg['cls_head']['type'] = 'TokenLabelHead'
    cfg['backbone'].update(backbone)
    model = MODELS.build(cfg).eval()
    model.load_state_dict(convert('dualformer', g['state_dict']), strict=True)
    return model


def clips_of(g):
    clips = g['input'] if 'input' in g else g['input_small'].repeat_interleave(
        g['upsample'], 3).repeat_interleave(g['upsample'], 4)
    return clips[:, None]


def _differ(got, want):
    return ((got - want).norm() / want.norm()).item()


@pytest.mark.parametrize('case', ['reduced', 'reduced_tl', 'geom224',
                                  'geom224_16f'])
def test_golden_released_model(golden, case):
    """The released model, its weights through ``convert``, strictly."""
    g = golden(f'dualformer/golden_{case}.pt')
    model = load_released(g)
    clips = clips_of(g)
    taps = {}
    backbone = model.backbone
    for i in range(4):
        modules = {'patch_embed': backbone.patch_embeds[i],
                   'peg': backbone.pegs[i]}
        for j, block in enumerate(backbone.blocks[i]):
            modules[f'block{j}.attn'] = block.attn
            modules[f'block{j}'] = block
        for name, module in modules.items():
            module.register_forward_hook(
                lambda m, args, out, key=f'stage{i}.{name}': taps.update(
                    {key: out.flatten(1, 3)}))
    with torch.no_grad():
        y = model(clips, mode='tensor', stage='head')
        assert _differ(y, g['output']) < 1e-5
        for name, want in g.get('intermediate', {}).items():
            assert _differ(taps[name], want) < 1e-5, name
        if 'features' in g:
            feats = model.backbone(clips[:, 0])
            assert _differ(feats, g['features']) < 1e-5
        if case == 'reduced_tl':
            assert _differ(model.cls_head.forward_tokens(feats).flatten(1, 3),
                           g['token_preds'].flatten(1, -2)) < 1e-5
        if 'output_first16frames' in g:
            y = model(clips[:, :, :, :16], mode='tensor', stage='head')
            assert _differ(y, g['output_first16frames']) < 1e-5


def test_golden_inflation(golden):
    g = golden('dualformer/golden_inflate.pt')
    init_default_scope('mmaction')
    model = MODELS.build(from_released(g['config'])['backbone'])
    image = convert('dualformer_2d', g['state_dict_2d'])
    model.load_state_dict(
        {k.removeprefix('backbone.'): v for k, v in image.items()})
    want = convert('dualformer', {
        f'backbone.{k}': v for k, v in g['state_dict'].items()})
    got = model.state_dict()
    assert {f'backbone.{k}' for k in got} == want.keys()
    for name, value in got.items():
        assert torch.allclose(value, want[f'backbone.{name}'], rtol=1e-5,
                              atol=1e-8), name
