# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import pytest
import torch
import torch.nn.functional as F
from backbones import families
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import nn

from mmvidattn.backbones import ViViT
from mmvidattn.backbones.vivit import Encoder
from mmvidattn.convert import convert
from mmvidattn.heads import ViViTHead
from mmvidattn.utils.complexity import count_complexity

TINY = families.TINY[ViViT]
MODEL_NAMES = 'joint', 'fact_encoder', 'fact_attention', 'fact_dot'


def _build(**kwargs):
    torch.manual_seed(0)
    model = ViViT(**{**TINY, **kwargs})
    model.init_weights()
    return model


def _clips(num_frames=8, height=32, width=48, batch=2):
    return torch.randn(batch, 3, num_frames, height, width)


def _learns(model, clips):
    y = model(clips)
    assert y.shape == (len(clips), 32) and y.isfinite().all()
    (y * torch.randn_like(y)).sum().backward()
    return {
        name: p.grad is not None and bool(p.grad.isfinite().all())
        and p.grad.abs().max().item() > 0
        for name, p in model.named_parameters()
    }


def test_temporal_attention_from_zero_learns_after_a_step():
    model, clips = _build(model='fact_attention'), _clips()
    inside = [f'encoder.blocks.{i}.temporal_attn.qkv.weight' for i in (0, 1)]
    learns = _learns(model, clips)
    for name in learns:
        # Behind the zero nothing moves yet, but the zero itself does.
        behind = 'temporal_attn.qkv' in name or 'temporal_attn_norm' in name
        assert learns[name] == (not behind), name
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    model.zero_grad()
    learns = _learns(model, clips)
    assert all(learns.values()) and set(inside) <= set(learns)


def test_released_zeros_never_learn():
    """Why only the output projection is zero here."""
    model, clips = _build(model='fact_attention'), _clips()
    for block in model.encoder.blocks:
        nn.init.zeros_(block.temporal_attn.qkv.weight)
    for _ in range(2):
        _learns(model, clips)
        for block in model.encoder.blocks:
            for layer in (block.temporal_attn.qkv, block.temporal_attn.proj):
                assert layer.weight.grad.abs().max() == 0
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        model.zero_grad()


@pytest.mark.parametrize('order', ['time_space', 'space_time'])
def test_temporal_attention_starts_as_identity(order):
    model = _build(model='fact_attention', order=order).double().eval()
    clip = _clips(batch=1).double()
    want = model(clip)
    for block in model.encoder.blocks:
        block.branches = tuple(b for b in block.branches
                               if b != 'temporal_attn')
    assert torch.equal(model(clip), want)


def test_may_start_at_random():
    model = _build(model='fact_attention', zero_init_temporal=False)
    assert model.encoder.blocks[0].temporal_attn.proj.weight.std() > 0.01


def _norm(x, norm):
    x = (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, keepdim=True, unbiased=False) + 1e-6).sqrt()
    return x * norm.weight + norm.bias


def _mlp(x, mlp):
    x = x @ mlp.fc1.weight.T + mlp.fc1.bias
    x = x / 2 * (1 + torch.tanh((2 / torch.pi)**.5 * (x + .044715 * x**3)))
    return x @ mlp.fc2.weight.T + mlp.fc2.bias


def _attention(x, attn, allowed):
    """Tokens [N, D]; ``allowed`` [G, N, N] tells who sees whom."""
    G = len(allowed)
    qkv = x @ attn.qkv.weight.T + attn.qkv.bias
    q, k, v = (z.unflatten(-1, (G, -1)).transpose(0, 1)
               for z in qkv.chunk(3, -1))
    scores = (q @ k.mT / q.shape[-1]**.5).exp() * allowed
    y = (scores / scores.sum(-1, keepdim=True)) @ v
    return y.transpose(0, 1).flatten(1) @ attn.proj.weight.T + attn.proj.bias


def _run(x, blocks, norm, allowed):
    """Blocks whose attentions see what ``allowed`` says, by name."""
    for block in blocks:
        for name, mask in allowed.items():
            y = _norm(x, getattr(block, f'{name}_norm'))
            x = x + _attention(y, getattr(block, name), mask)
        x = x + _mlp(_norm(x, block.mlp_norm), block.mlp)
    return _norm(x, norm)


def _by_hand(model, clip, name, order):
    """One clip [C, T, H, W], tubelet by tubelet."""
    weight, bias = model.patch_embed.projection.parameters()
    t, p = weight.shape[2:4]
    grid = [n // s for n, s in zip(clip.shape[1:], (t, p, p))]
    tokens, places = [], []
    for i in range(grid[0]):
        for y in range(grid[1]):
            for x in range(grid[2]):
                part = clip[:, t * i:t * i + t, p * y:p * y + p,
                            p * x:p * x + p]
                tokens.append((weight * part).sum((1, 2, 3, 4)) + bias)
                places.append((i, (y, x)))
    tokens = torch.stack(tokens)
    encoder, G = model.encoder, TINY['num_heads']
    if name == 'fact_encoder':
        tokens = torch.stack([_all_to_all(part, encoder)
                              for part in tokens.split(grid[1] * grid[2])])
        if encoder.temporal is None:
            return tokens.mean(0)
        encoder = encoder.temporal
    if name in ('joint', 'fact_encoder'):
        return _all_to_all(tokens, encoder)
    tokens = tokens + encoder.pos_embed.flatten(0, 3)
    frame = torch.tensor([[a[0] == b[0] for b in places] for a in places])
    place = torch.tensor([[a[1] == b[1] for b in places] for a in places])
    frame, place = frame.double(), place.double()
    if name == 'fact_attention':
        masks = dict(
            temporal_attn=place.expand(G, -1, -1),
            attn=frame.expand(G, -1, -1))
        if order == 'space_time':
            masks = dict(reversed(masks.items()))
    else:
        masks = dict(attn=torch.stack(G // 2 * [place] + G // 2 * [frame]))
    return _run(tokens, encoder.blocks, encoder.norm, masks).mean(0)


def _all_to_all(tokens, encoder):
    """Tokens [N, D] to what stands for all of them, [D]."""
    tokens = tokens + encoder.pos_embed.flatten(0, 3)
    with_token = encoder.cls_token is not None
    if with_token:
        tokens = torch.cat([encoder.cls_token.view(1, -1), tokens])
    mask = torch.ones(TINY['num_heads'], len(tokens), len(tokens)).double()
    y = _run(tokens, encoder.blocks, encoder.norm, dict(attn=mask))
    return y[0] if with_token else y.mean(0)


@pytest.mark.parametrize('name, kwargs', [
    ('joint', {}), ('joint', dict(pool='mean')), ('fact_encoder', {}),
    ('fact_encoder', dict(pool='mean')),
    ('fact_encoder', dict(num_temporal_layers=0)), ('fact_dot', {}),
    ('fact_attention', dict(order='time_space')),
    ('fact_attention', dict(order='space_time'))],
    ids=lambda x: x if isinstance(x, str) else ''.join(
        map(str, x.values())) or 'default')
def test_matches_a_transformer_written_out(name, kwargs):
    model = _build(model=name, num_frames=6, **kwargs).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    clip = _clips(6, batch=1).double()
    with torch.no_grad():
        want = _by_hand(model, clip[0], name, kwargs.get('order'))
        assert (model(clip)[0] - want).norm() < 1e-10 * want.norm()


@pytest.mark.parametrize('name', MODEL_NAMES)
def test_options_reach_every_layer(name):
    model = _build(
        model=name, in_channels=5, mlp_ratio=2, qkv_bias=False, drop_rate=.1,
        attention=dict(type='SoftmaxAttention', dropout=.2))
    assert model.patch_embed.projection.in_channels == 5
    dropouts = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    assert dropouts == [.1] * len(dropouts)
    blocks = [block for part in model.modules() if isinstance(
        part, Encoder) for block in part.blocks]
    for block in blocks:
        assert block.mlp.fc1.out_features == 64
        for branch in set(block.branches) - {'mlp'}:
            attn = getattr(block, branch)
            assert attn.qkv.bias is None and attn.proj.bias is not None
            assert .2 == (attn.attn_drop_rate if name == 'fact_dot' else
                          attn.attention.dropout)


@pytest.mark.slow
@pytest.mark.parametrize('name', MODEL_NAMES)
def test_compiles_by_inductor_to_the_same_output(name):
    model, clips = _build(model=name).eval(), _clips(batch=1)
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(compiled(clips), model(clips), atol=1e-5)


@pytest.mark.parametrize('arch, name, params, gmacs', [
    ('B', 'joint', 88.95, 451.5), ('B', 'fact_encoder', 115.06, 283.3),
    ('B', 'fact_attention', 117.32, 371.1), ('B', 'fact_dot', 88.95, 276.2),
    ('L', 'joint', 307.5, 1436), ('L', 'fact_encoder', 354.9, 988),
    ('L', 'fact_attention', 408.3, 1300), ('L', 'fact_dot', 307.5, 968)])
def test_has_the_parameters_and_operations_of_the_released_model(
        arch, name, params, gmacs):
    with torch.device('meta'):
        model = ViViT(model=name, arch=arch)
        model = nn.Sequential(
            model, ViViTHead(400, model.encoder.norm.weight.numel()))
        clips = torch.empty(1, 3, 32, 224, 224)
    ours = count_complexity(model, clips)
    digits = 2 if arch == 'B' else 1
    assert round(ours.params / 1e6, digits) == params
    assert ours.macs / 1e9 == pytest.approx(gmacs, rel=0.01)
    assert not ours.uncounted


@pytest.mark.parametrize('arch, dims', [('tiny', 192), ('S', 384)])
def test_small_archs(arch, dims):
    with torch.device('meta'):
        model = ViViT(arch=arch)
    assert model.encoder.blocks[11].attn.num_heads == dims // 64
    assert model.encoder.norm.weight.numel() == dims


@pytest.mark.parametrize('scale', [False, True])
def test_stochastic_depth_grows_with_the_block_of_each_encoder(scale):
    model = _build(model='fact_encoder', num_layers=3, drop_path_rate=0.2,
                   drop_path_scale=scale).train()
    for encoder, rates in ((model.encoder, [0, .1, .2]),
                           (model.encoder.temporal, [0, .2 / 3, .4 / 3, .2])):
        paths = [block.drop_path for block in encoder.blocks]
        assert [path.drop_prob for path in paths] == pytest.approx(rates)
    kept = set(paths[-1](torch.ones(64)).tolist())
    assert sorted(kept) == pytest.approx([0, 1.25 if scale else 1])


def test_positions_in_one_row_are_folded_if_the_grid_is_clear():
    model = _build(model='joint')
    table = torch.randn(1, 24, 32)
    model.load_state_dict({'encoder.pos_embed': table}, strict=False)
    assert torch.equal(model.encoder.pos_embed, table.view(1, 4, 2, 3, 32))
    with pytest.raises(ValueError, match='30 positions in one row.*4 x 2 x 3'):
        model.load_state_dict({'encoder.pos_embed': torch.randn(1, 30, 32)},
                              strict=False)
    model = _build(model='fact_encoder')
    table = torch.randn(1, 16, 32)
    model.load_state_dict(
        {'encoder.pos_embed': table, 'encoder.temporal.pos_embed': table},
        strict=False)
    assert model.encoder.pos_embed.isfinite().all()
    assert model.encoder.temporal.pos_embed.shape == (1, 4, 1, 1, 32)


def _vit(dims=32, classes=10):
    torch.manual_seed(1)
    return {
        'cls_token': torch.randn(1, 1, dims),
        'pos_embed': torch.randn(1, 10, dims),
        'patch_embed.proj.weight': torch.randn(dims, 3, 16, 16),
        'patch_embed.proj.bias': torch.randn(dims),
        'blocks.1.norm1.weight': torch.randn(dims),
        'blocks.1.attn.qkv.weight': torch.randn(3 * dims, dims),
        'blocks.0.mlp.fc1.weight': torch.randn(2 * dims, dims),
        'norm.bias': torch.randn(dims),
        'head.weight': torch.randn(classes, dims),
    }


@pytest.mark.parametrize('name', MODEL_NAMES)
@pytest.mark.parametrize('patch_init', ['central', 'average'])
def test_starts_from_an_image_vit_and_reports_what_matched(
        tmp_path, monkeypatch, name, patch_init):
    vit, path = _vit(), tmp_path / 'vit.pth'
    torch.save(dict(state_dict=convert('vivit_image', vit)), path)
    reports = []
    monkeypatch.setattr(
        'mmvidattn.backbones.base.print_log',
        lambda message, logger: reports.append(message))
    model = _build(
        model=name, img_size=48, patch_init=patch_init, tubelet_frames=4,
        init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    encoder = model.encoder
    assert torch.equal(encoder.blocks[1].attn.qkv.weight,
                       vit['blocks.1.attn.qkv.weight'])
    for table in encoder.pos_embed[0]:
        assert torch.allclose(table.flatten(0, 1), vit['pos_embed'][0, 1:])
    if encoder.cls_token is not None:
        assert torch.equal(
            encoder.cls_token.flatten(),
            (vit['cls_token'] + vit['pos_embed'][:, :1]).flatten())
    shares = [0, 0, 1, 0] if patch_init == 'central' else 4 * [.25]
    kernel = model.patch_embed.projection.weight
    for t, share in enumerate(shares):
        assert torch.allclose(kernel[:, :, t],
                              share * vit['patch_embed.proj.weight'])
    report, = reports
    assert report.startswith(f'ViViT starts from {path}: ')
    assert 'other shape: encoder.blocks.0.mlp.fc1.weight (64, 32)' in report


@pytest.mark.parametrize('patch_init', ['central', 'average'])
def test_a_still_clip_has_the_tokens_of_its_image(patch_init):
    model = _build(patch_init=patch_init)
    kernel = torch.randn(32, 3, 16, 16)
    model.load_state_dict({'patch_embed.projection.weight': kernel},
                          strict=False)
    image = torch.randn(1, 3, 32, 48)
    tokens = model.patch_embed(image.unsqueeze(2).expand(-1, -1, 8, -1, -1))
    want = F.conv2d(image, kernel, model.patch_embed.projection.bias, 16)
    for t in range(4):
        assert torch.allclose(
            tokens[:, t].permute(0, 3, 1, 2), want, atol=1e-4)


@pytest.mark.parametrize('patch_init', ['central', 'average', 'random'])
def test_tubelets_start_as_configured_without_a_checkpoint(patch_init):
    frames = _build(patch_init=patch_init).patch_embed.projection.weight
    first, second = frames.unbind(2)
    assert second.std() > 0
    if patch_init == 'central':
        assert first.abs().max() == 0
    else:
        assert torch.equal(first, second) == (patch_init == 'average')


def test_initialization_has_the_documented_spread():
    model = ViViT(embed_dims=128, num_layers=1, num_heads=2, init_std=0.1,
                  embed_init_std=0.3, model='fact_encoder')
    model.init_weights()
    block = model.encoder.blocks[0]
    for tensor, std in ((block.attn.qkv.weight, 0.1),
                        (model.encoder.pos_embed, 0.3),
                        (model.encoder.cls_token, 0.3),
                        (model.encoder.temporal.pos_embed, 0.3)):
        assert tensor.std().item() == pytest.approx(std, rel=0.2)
    assert block.attn.qkv.bias.abs().max() == 0


@pytest.mark.parametrize('kwargs, message', [
    (dict(model='x'), "model must be one of .*'joint'.*got 'x'"),
    (dict(arch='G'), "arch must be one of .*'H'.*got 'G'"),
    (dict(model='fact_attention', order='x'), "order must be.*got 'x'"),
    (dict(pool='max'), "pool must be one of .*got 'max'"),
    (dict(patch_init='x'), "patch_init must be one of .*got 'x'"),
    (dict(order='time_space'), "order belongs to model='fact_attention'.*"),
    (dict(num_temporal_layers=2), "num_temporal_layers belongs.*'joint'"),
    (dict(zero_init_temporal=True), 'zero_init_temporal belongs to'),
    (dict(model='fact_dot', pool='cls'), "'fact_dot' has no class token"),
    (dict(model='fact_dot', num_heads=1), 'num_heads must be even.*got 1'),
    (dict(model='fact_dot', arch='tiny', num_heads=None),
     'num_heads must be even.*got 3'),
    (dict(model='fact_dot', attention=dict(type='LinearAttention')),
     "'fact_dot' has softmax attention.*'LinearAttention'"),
    (dict(model='fact_dot', attention=dict(
        type='SoftmaxAttention', drop=.1)), "may have dropout, got.*'drop'"),
    (dict(model='fact_dot', fixation={}),
     "'fact_dot' has no feature fixation.*got {}"),
    (dict(model='fact_encoder', num_temporal_layers=-1),
     'num_temporal_layers must be a non-negative integer, got -1'),
    (dict(drop_path_rate=1.), 'drop_path_rate.*got 1.0'),
    (dict(num_frames=7), 'num_frames.*tubelet_frames=2, got 7'),
    (dict(img_size=40), r'img_size=\(40, 40\).*patch_size=16'),
    (dict(sampled_frames=4), 'sampled_frames needs tubelet_frames=1'),
    (dict(sampled_frames=9, tubelet_frames=1), 'sampled_frames.*8, got 9'),
    (dict(sampled_frames=0, tubelet_frames=1), 'sampled_frames.*positive'),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(**kwargs)


def _recognizer(backbone, num_classes, channels):
    init_default_scope('mmaction')
    return MODELS.build(
        dict(
            type='Recognizer3D',
            backbone=dict(type='ViViT', **backbone),
            cls_head=dict(
                type='ViViTHead',
                num_classes=num_classes,
                in_channels=channels))).eval()


def _options_of(tree, clips):
    """What the arrays of a released model tell of it."""
    kernel = tree['embedding/kernel']
    encoder = 'Transformer'
    options = dict(model='joint')
    if 'cls_SpatialTransformer' in tree:
        encoder = 'SpatialTransformer'
        options = dict(
            model='fact_encoder',
            num_temporal_layers=len({
                path.split('/')[1] for path in tree
                if path.startswith('TemporalTransformer/encoderblock')}))
    elif any('_time' in path for path in tree):
        options = dict(model='fact_attention', order='time_space')
    elif 'cls' not in tree:
        options = dict(model='fact_dot')
    query, = (tree[path] for path in tree if path.startswith(
        f'{encoder}/encoderblock_0/') and path.endswith('query/kernel')
        and '_time' not in path)
    hidden, = (tree[path] for path in tree if path.startswith(
        f'{encoder}/encoderblock_0/') and path.endswith('Dense_0/kernel'))
    T, H, W = clips.shape[2:]
    patch = kernel.shape[-3]
    if kernel.dim() == 4:
        positions = tree[f'{encoder}/posembed_input/pos_embedding'].shape[1]
        options.update(
            tubelet_frames=1,
            sampled_frames=(positions - 1) * patch**2 // (H * W))
    else:
        options.update(tubelet_frames=len(kernel))
    return dict(
        options,
        num_frames=T,
        img_size=(H, W),
        patch_size=patch,
        embed_dims=kernel.shape[-1],
        num_layers=len({path.split('/')[1] for path in tree
                        if path.startswith(f'{encoder}/encoderblock')}),
        num_heads=query.shape[1],
        mlp_ratio=hidden.shape[1] / hidden.shape[0])


@pytest.mark.parametrize('case', [
    'model1_token', 'model2_token', 'model3_time_space', 'model4',
    'model1_token_uniform_sampling'])
def test_golden_released_model(golden, case):
    """The released models, their weights through ``convert``, strictly."""
    G = golden('vivit/golden_scenic_vivit.pt')
    clips = G['input_NTHWC'].permute(0, 4, 1, 2, 3)
    tree, want = G[case]['param'], G[case]['logits']
    options = _options_of(tree, clips)
    model = _recognizer(options, want.shape[1], options['embed_dims'])
    model.load_state_dict(convert('vivit_scenic', tree), strict=True)
    with torch.no_grad():
        got = model(clips.unsqueeze(1), mode='tensor', stage='head')
    assert (got - want).norm() <= 1e-5 * want.norm()


def test_golden_hugging_face_model(golden):
    g = golden('vivit/golden_hf_vivit.pt')
    cfg, clips = g['config'], g['input'].transpose(1, 2)
    frames, patch, _ = cfg['tubelet_size']
    model = _recognizer(
        dict(
            num_frames=cfg['num_frames'],
            img_size=cfg['image_size'],
            patch_size=patch,
            tubelet_frames=frames,
            embed_dims=cfg['hidden_size'],
            num_layers=cfg['num_hidden_layers'],
            num_heads=cfg['num_attention_heads'],
            mlp_ratio=cfg['intermediate_size'] / cfg['hidden_size']),
        g['logits'].shape[1], cfg['hidden_size'])
    model.load_state_dict(convert('vivit_hf', g['state_dict']), strict=True)
    backbone, seen = model.backbone, []
    backbone.encoder.blocks[0].register_forward_pre_hook(
        lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        got = model(clips.unsqueeze(1), mode='tensor', stage='head')
    for a, b in ((got, g['logits']), (seen[0].squeeze(1, 3),
                                      g['embeddings'])):
        assert (a - b).norm() <= 1e-5 * b.norm()
