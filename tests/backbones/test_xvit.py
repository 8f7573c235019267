# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from functools import partial

import pytest
import torch
from backbones.families import build, outputs_of, released
from helpers import relative
from torch import nn

from mmvidattn.backbones import XViT

_build = partial(build, XViT)


def _clips(num_frames=4, height=64, width=64, batch=2):
    return torch.randn(batch, 3, num_frames, height, width)


def _layer_norm(x, norm, eps):
    x = (x - x.mean(-1, keepdim=True)) / (
        x.var(-1, keepdim=True, unbiased=False) + eps).sqrt()
    return x * norm.weight + norm.bias


def _mixed(x, divisor):
    """Shift channels of [T, N, C] from the next and the previous frame."""
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
    """Compute one clip [C, T, H, W], patch by patch and frame by frame."""
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
def test_matches_explicit_transformer(divisor):
    model = _build(
        img_size=(32, 48),
        temporal_shift=divisor and dict(mode='tsm', divisor=divisor)).double()
    for p in model.parameters():
        nn.init.normal_(p, std=0.3)
    clip = _clips(4, 32, 48, batch=1).double()
    with torch.no_grad():
        want = _by_hand(model, clip[0], divisor)
        assert relative(model(clip)[0], want) < 1e-10


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


@pytest.mark.parametrize('case, shift', [
    ('div4', dict(mode='tsm', divisor=4)), ('noshift', None)])
def test_golden_released_model(golden, case, shift):
    """Outputs of the released model with its converted weights."""
    G = golden('linear/golden_xvit.pt')
    g = G[case]
    model = released(
        'xvit', g['state_dict'],
        dict(type='XViT', num_frames=8, img_size=64, embed_dims=48,
             num_layers=2, num_heads=3, temporal_shift=shift),
        dict(type='XViTHead', num_classes=7, in_channels=48, num_heads=3,
             hidden_dims=24))
    logits, taps = outputs_of(model, G['_input'])
    assert relative(logits, g['output']) < 1e-5
    assert taps.keys() == g['taps'].keys()
    for name, tap in g['taps'].items():
        assert relative(taps[name], tap) < 1e-5, name
