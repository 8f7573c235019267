# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Leap attention and shifts: our layer, and other networks with them."""
import copy
import pickle

import pytest
import torch
from backbones.families import Attention
from ops.attentions import naive
from torch import nn

from mmvidattn.convert import convert
from mmvidattn.layers.temporal import (
    FrameMixing,
    LAPSAttention,
    inflate,
    inflated_modules,
)

B, T, N, C, G = 2, 8, 3, 8, 2
SMALL = dict(embed_dims=768, num_layers=4, num_heads=12)


class Masked(Attention):

    def weigh(self, scores):
        return (scores + torch.full_like(scores, -1e9).triu(1)).softmax(-1)


class Alone(Attention):
    """Tokens do not attend to each other."""

    def weigh(self, scores):
        return torch.eye(scores.shape[-1]).expand_as(scores)


class Fixed(Attention):

    def forward(self, x):
        return super().forward(x.view(-1, N + 1, C))


class Guided(Attention):

    def forward(self, x, rope):
        return super().forward(x)


class CrossAttention(nn.Module):

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(C, C)


class Net(nn.Module):
    """A chain of attentions on tokens of frames [B T, N, C]."""

    def __init__(self, *attentions):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.ModuleDict(dict(norm=nn.Identity(), attn=attn))
            for attn in attentions)

    def forward(self, x):
        for block in self.blocks:
            x = x + block['attn'](block['norm'](x))
        return x


def _net(number=4):
    torch.manual_seed(0)
    return Net(*(Attention() for _ in range(number)))


def _by_hand(net, x, levels, fraction, first):
    """Process frames [B T, N, C] with naive ops."""
    for block, level in zip(net.blocks, levels):
        attn = block['attn']
        q, k, v = attn.qkv(x).view(-1, T, N, 3, G, C // G).unbind(3)
        y = naive.periodic_shift(
            naive.leap_attention(q, k, v, level), fraction, first)
        x = x + attn.proj(y.reshape(x.shape))
    return x


@pytest.mark.parametrize('fraction, first', [
    (1 / 4, 'next'), (1 / 4, 'previous'), (1 / 2, 'next')])
def test_matches_naive_ops(fraction, first):
    net = _net().double()
    x = torch.randn(2 * T, N, C, dtype=torch.float64)
    with torch.no_grad():
        want = _by_hand(net, x, (1, 2, 3, 1), fraction, first)
        inflate(net, T, shift_fraction=fraction, shift_first=first)
        assert torch.allclose(net(x), want, atol=1e-12)


def test_keeps_parameters_and_lists_changed_modules():
    net = _net()
    keys = {name: p.data_ptr() for name, p in net.state_dict().items()}
    assert inflate(net, T, pyramid=(1, 3), skip=['blocks.2.*']) is net
    assert {name: p.data_ptr() for name, p in net.state_dict().items()} == keys
    assert inflated_modules(net) == {
        f'blocks.{i}.attn': f'num_frames=8, attention=leap, level={level}, '
        'shift=periodic, fraction=0.25, first=next'
        for i, level in ((0, 1), (1, 3), (3, 1))}


def test_survives_copying_pickling_and_compiling():
    net = inflate(_net(1), T)
    x = torch.randn(T, N, C)
    want = net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net)),
                  torch.compile(net, backend='eager')):
        assert torch.allclose(other(x), want, atol=1e-6)


@pytest.mark.parametrize('attention, message', [
    (Masked(), 'depends on the order'), (Alone(), 'do not all attend'),
    (Fixed(), 'does not take tokens'), (Guided(), 'takes rope'),
    (Attention(bias_table=nn.Parameter(torch.zeros(N, N))), 'bias_table'),
    (Attention(proj_l=nn.Linear(G, G)), 'proj_l'),
    (CrossAttention(), 'no qkv, proj, num_heads')])
def test_rejects_unsupported_attentions(attention, message):
    net = Net(Attention(), attention)
    with pytest.raises(ValueError, match=(
            rf'blocks.1.attn.*{type(attention).__name__}.*({message})')):
        inflate(net, T)
    assert not inflated_modules(net)
    assert len(inflated_modules(inflate(net, T, skip=['blocks.1.*']))) == 1


def test_rejects_inflated_networks_and_networks_without_attention():
    with pytest.raises(ValueError, match='Net is already inflated'):
        inflate(inflate(_net(), T), T)
    with pytest.raises(ValueError, match='Linear has no attention'):
        inflate(nn.Linear(3, 3), T)


def test_rejects_incomplete_clips_and_masks():
    net = inflate(_net(), T)
    with pytest.raises(ValueError, match='9 frames.*num_frames=8'):
        net(torch.zeros(9, N, C))
    attn = net.blocks[0]['attn']
    with pytest.raises(ValueError, match='attn_mask is not supported'):
        attn(torch.zeros(T, N, C), attn_mask=torch.ones(N, N))
    attn(torch.zeros(T, N, C), attn_mask=None)


def _randomize(model):
    for p in model.parameters():
        p.requires_grad_(False)
        nn.init.normal_(p, std=p[0].numel()**-0.5 if p.dim() > 1 else 1.)
    # In float32, Visformer with these weights has rounding errors of 2e-4.
    return model.double().eval()


@pytest.mark.parametrize('name, attention, shift', [
    ('visformer_small', 'leap', 'periodic'),
    ('vit_base_patch16_224', '3d', 'plain')])
def test_inflated_timm_models_equal_our_models(
        name, attention, shift, timm):
    from mmvidattn.backbones import Visformer, VisionTransformerLAPS
    torch.manual_seed(0)
    vit = name.startswith('vit')
    theirs = _randomize(timm.create_model(
        name, num_classes=0, global_pool='', img_size=64,
        **dict(depth=4) if vit else {}))
    options = dict(num_frames=T, img_size=64, attention=attention, shift=shift)
    if vit:
        ours = VisionTransformerLAPS(arch=SMALL, **options)
        state = convert('laps_vit_timm', theirs.state_dict())
    else:
        ours = Visformer(**options)
        state = convert('visformer_timm', theirs.state_dict())
    ours.double().eval().load_state_dict({
        key.removeprefix('backbone.'): value for key, value in state.items()})
    clips = torch.randn(1, 3, T, 64, 64, dtype=torch.float64)
    with torch.no_grad():
        want = ours(clips)
        pyramid = (1, 2, 3, 1) if vit else (1, 2, 3)
        inflate(theirs, T, pyramid, shift, attention)
        got = theirs(clips.transpose(1, 2).flatten(0, 1))
    got = got[:, 0] if vit else got
    got = got.unflatten(0, (1, T)).transpose(1, 2)
    assert got.shape == want.shape
    assert (got - want).norm() < 1e-8 * want.norm()


def _layer_by_hand(layer, x, attention, level, shift):
    """Compute the layer with naive ops; x is [B T, N, C]."""
    qkv = x @ layer.qkv.weight.T
    if layer.qkv.bias is not None:
        qkv = qkv + layer.qkv.bias
    q, k, v = qkv.view(B, T, N, 3, G, C // G).unbind(3)
    if attention == 'leap':
        y = naive.leap_attention(q, k, v, level)
    elif attention == '2d':
        y = naive.softmax_attention(q, k, v)
    else:
        y = naive.softmax_attention(
            *(z.flatten(1, 2) for z in (q, k, v))).view(q.shape)
    if shift == 'periodic':
        y = naive.periodic_shift(y, 1 / 4, 'previous')
    elif shift == 'plain':
        y = naive.periodic_shift(
            y.flatten(-2)[..., None, :], 1 / 4, 'previous')
    y = y.reshape(B * T, N, C) @ layer.proj.weight.T
    return y if layer.proj.bias is None else y + layer.proj.bias


@pytest.mark.parametrize('bias', [True, False])
@pytest.mark.parametrize('shift', ['none', 'plain', 'periodic', 'token'])
@pytest.mark.parametrize('attention, level', [
    ('2d', 1), ('3d', 1), ('leap', 1), ('leap', 3)])
def test_layer_matches_naive_ops(attention, level, shift, bias):
    torch.manual_seed(0)
    mixing = FrameMixing(T, attention, level, shift, 1 / 4, 'previous')
    layer = LAPSAttention(C, G, mixing, bias).double()
    x = torch.randn(B * T, N, C, dtype=torch.float64)
    want = _layer_by_hand(layer, x, attention, level, shift)
    assert torch.allclose(layer(x), want, atol=1e-12)
    # The layer also accepts a grid of tokens.
    grid = layer(x.unflatten(1, (1, N)))
    assert torch.allclose(grid.flatten(1, 2), want, atol=1e-12)
