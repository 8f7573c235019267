# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from backbones.families import build
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import nn

from mmvidattn.backbones import XViT
from mmvidattn.convert import convert
from mmvidattn.heads import XViTHead
from mmvidattn.utils.complexity import count_complexity

_build = partial(build, XViT)


def _clips(num_frames=4, height=64, width=64, batch=2):
    return torch.randn(batch, 3, num_frames, height, width)


def _layer_norm(x, norm, eps):
    x = (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()
    return x * norm.weight + norm.bias


def _mixed(x, divisor):
    """Channels [T, N, C]: a fold of the next frame, one of the previous."""
    fold = x.shape[-1] // divisor
    out = torch.zeros_like(x)
    for t in range(len(x)):
        if t + 1 < len(x):
            out[t, :, :fold] = x[t + 1, :, :fold]
        if t > 0:
            out[t, :, fold:2 * fold] = x[t - 1, :, fold:2 * fold]
        out[t, :, 2 * fold:] = x[t, :, 2 * fold:]
    return out


def _by_hand(model, clip, divisor, size=16):
    """One clip [C, T, H, W], patch by patch and frame by frame."""
    T, H, W = clip.shape[1:]
    weight, bias = model.patch_embed.projection.parameters()
    frames = []
    for t in range(T):
        tokens = [model.cls_token.flatten()]
        for y in range(H // size):
            for x in range(W // size):
                patch = clip[:, t, size * y:size * (y + 1),
                             size * x:size * (x + 1)]
                tokens.append((weight * patch).sum((1, 2, 3)) + bias +
                              model.pos_embed[0, 0, y, x])
        frames.append(
            torch.stack(tokens) + model.temporal_embed[0, t, 0, 0])
    x = torch.stack(frames)
    for block in model.blocks:
        norm, attn = block.attn_norm, block.attn
        qkv = _layer_norm(x, norm, 1e-6) @ attn.qkv.weight.T + attn.qkv.bias
        q, k, v = qkv.chunk(3, -1)
        if divisor is not None:
            k, v = _mixed(k, divisor), _mixed(v, divisor)
        heads = []
        for head in range(attn.num_heads):
            width = q.shape[-1] // attn.num_heads
            a, b, c = (z[..., head * width:(head + 1) * width]
                       for z in (q, k, v))
            scores = (a @ b.mT / width**0.5).exp()
            heads.append(scores @ c / scores.sum(-1, keepdim=True))
        y = torch.cat(heads, -1)
        x = x + y @ attn.proj.weight.T + attn.proj.bias
        y = _layer_norm(x, block.mlp_norm, 1e-6)
        y = y @ block.mlp.fc1.weight.T + block.mlp.fc1.bias
        y = y * 0.5 * (1 + torch.erf(y / 2**0.5))
        x = x + y @ block.mlp.fc2.weight.T + block.mlp.fc2.bias
    return _layer_norm(x[:, 0], model.norm, 1e-6).T


@pytest.mark.parametrize('divisor', [4, 8, 5, None])
def test_matches_a_transformer_written_out(divisor):
    model = _build(
        img_size=(32, 48),
        temporal_shift=divisor and dict(mode='tsm', divisor=divisor)).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    clip = _clips(4, 32, 48, batch=1).double()
    with torch.no_grad():
        want = _by_hand(model, clip[0], divisor)
        assert (model(clip)[0] - want).norm() < 1e-10 * want.norm()


def test_mixing_reaches_one_frame_a_block():
    model = _build(num_frames=6, num_layers=2).double()
    clip = _clips(6, batch=1).double().requires_grad_()
    y = model(clip)
    grad, = torch.autograd.grad(y[:, :, 0].square().sum(), clip)
    reached = grad.abs().amax(dim=(0, 1, 3, 4)) > 0
    assert reached.tolist() == [True] * 3 + [False] * 3


def test_frames_are_apart_without_mixing():
    model = _build(temporal_shift=None).double().eval()
    clip = _clips(batch=1).double()
    other = clip.clone()
    other[:, :, 1:] += 1
    assert torch.equal(model(clip)[:, :, 0], model(other)[:, :, 0])
    assert not torch.allclose(model(clip)[:, :, 1:], model(other)[:, :, 1:])


def test_default_has_the_parameters_and_operations_of_the_released_model():
    with torch.device('meta'):
        model = nn.Sequential(XViT(), XViTHead(174))
        clips = torch.empty(1, 3, 16, 224, 224)
    ours = count_complexity(model, clips)
    norms = []
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.register_forward_hook(
                lambda m, args, out: norms.append(out.numel()))
    model(clips)
    # The released model has 8 temporal embeddings, the class token's
    # position apart, and a layer that it does not use.
    released = ours.params - 8 * 768 + 768 + 769 * 174
    assert round(released / 1e6, 2) == 93.75
    assert round(ours.params / 1e6, 2) == 93.62
    # Its count has five operations an element of a norm, of every token in
    # the last one, of which we norm the class tokens only.
    rest = 16 * 196 * 768
    assert round((ours.macs + 5 * (sum(norms) + rest)) / 1e9, 2) == 281.43
    assert not ours.uncounted


@pytest.mark.parametrize('kwargs, message', [
    (dict(img_size=70), 'img_size=.*70.* not divisible by patch_size=16'),
    (dict(img_size=(64, 40)), r'img_size=\(64, 40\)'),
    (dict(temporal_shift=dict(mode='cross', divisor=4)),
     "temporal_shift.*'tsm', 'window'.*'cross'"),
    (dict(temporal_shift=dict(divisor=4)), "temporal_shift.*'tsm'.*None"),
    (dict(fixation=dict(mode='x')), "'separate', 'cooperative'.*'x'"),
])
def test_rejects(kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(**kwargs)


@pytest.mark.parametrize('side', range(16, 513, 16))
def test_resizes_positions_as_the_released_factor_does(side):
    table = torch.randn(1, 2, 14, 14)
    want = F.interpolate(table, scale_factor=(side / 16) / 14, mode='bicubic')
    got = F.interpolate(table, size=(side // 16, ) * 2, mode='bicubic')
    assert torch.allclose(got, want, atol=1e-4)


def test_starts_from_an_image_vit_and_reports_what_matched(
        tmp_path, monkeypatch):
    vit = {
        'cls_token': torch.randn(1, 1, 32),
        'pos_embed': torch.randn(1, 17, 32),
        'patch_embed.proj.weight': torch.randn(32, 3, 16, 16),
        'blocks.1.norm1.weight': torch.randn(32),
        'blocks.1.attn.qkv.weight': torch.randn(96, 32),
        'blocks.0.mlp.fc1.weight': torch.randn(64, 32),
        'norm.bias': torch.randn(32),
        'head.weight': torch.randn(10, 32),
    }
    path = tmp_path / 'vit.pth'
    torch.save(dict(state_dict=convert('xvit_image', vit)), path)
    reports = []
    monkeypatch.setattr(
        'mmvidattn.backbones.base.print_log',
        lambda message, logger: reports.append(message))
    model = _build(init_cfg=dict(type='Pretrained', checkpoint=str(path)))
    own = model.state_dict()
    assert torch.equal(own['blocks.1.attn.qkv.weight'],
                       vit['blocks.1.attn.qkv.weight'])
    assert torch.equal(own['pos_embed'].flatten(1, 3), vit['pos_embed'][:, 1:])
    assert torch.equal(own['cls_token'].flatten(),
                       (vit['cls_token'] + vit['pos_embed'][:, :1]).flatten())
    report, = reports
    assert report.startswith(f'XViT starts from {path}: 8 of 31 tensors')
    assert 'other shape: blocks.0.mlp.fc1.weight (64, 32)' in report
    assert 'not there: temporal_embed' in report


def test_initialization_has_the_documented_spread():
    model = XViT(embed_dims=128, num_layers=1, num_heads=2, init_std=0.1,
                 embed_init_std=0.3)
    model.init_weights()
    block = model.blocks[0]
    for tensor, std in ((block.attn.qkv.weight, 0.1), (model.pos_embed, 0.3),
                        (model.cls_token, 0.3)):
        assert tensor.std().item() == pytest.approx(std, rel=0.2)
    for tensor in (block.attn.qkv.bias, model.temporal_embed):
        assert tensor.abs().max() == 0


@pytest.mark.parametrize('case, shift', [
    ('div4', dict(mode='tsm', divisor=4)), ('noshift', None)])
def test_golden_released_model(golden, case, shift):
    """The released model, its weights through ``convert``, strictly."""
    init_default_scope('mmaction')
    G = golden('linear/golden_xvit.pt')
    g, clip = G[case], G['_input']
    model = MODELS.build(
        dict(
            type='Recognizer3D',
            backbone=dict(
                type='XViT',
                num_frames=8,
                img_size=64,
                embed_dims=48,
                num_layers=2,
                num_heads=3,
                temporal_shift=shift),
            cls_head=dict(
                type='XViTHead',
                num_classes=7,
                in_channels=48,
                num_heads=3,
                hidden_dims=24))).eval()
    model.load_state_dict(convert('xvit', g['state_dict']), strict=True)
    taps = {}
    for i, block in enumerate(model.backbone.blocks):
        block.register_forward_hook(
            lambda m, args, out, i=i: taps.update({f'block{i}': out}))
    with torch.no_grad():
        y = model(clip[:, None], mode='tensor', stage='head')
    assert (y - g['output']).norm() < 1e-5 * g['output'].norm()
    assert taps.keys() == g['taps'].keys()
    for name, tap in g['taps'].items():
        got = taps[name].flatten(0, 1).flatten(1, 2)
        assert (got - tap).norm() < 1e-5 * tap.norm()
