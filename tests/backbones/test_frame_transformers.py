# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Visformer, ResT and ViT with LAPS: common properties and golden outputs."""
import pytest
import torch
import torch.nn.functional as F
from backbones.families import FRAMES, TINY, outputs_of, released
from backbones.families import build as _build
from helpers import relative

from mmvidattn.backbones import ResT, Visformer, VisionTransformerLAPS
from mmvidattn.layers.temporal import FrameMixing
from tools.benchmark.references.laps import transcribe

T = 8
BACKBONES = pytest.mark.parametrize(
    'backbone', FRAMES, ids=lambda x: x.__name__)


def _clips(num_frames=T, side=64, batch=1):
    return torch.randn(batch, 3, num_frames, side, side)


def _mixings(model):
    return [m for m in model.modules() if isinstance(m, FrameMixing)]


@BACKBONES
def test_pyramid_is_repeated_over_attentions(backbone):
    levels = [m.level for m in _mixings(_build(backbone, pyramid=(1, 3)))]
    want = {
        Visformer: [1, 3, 1, 3],
        # Restarts in each stage.
        ResT: [1, 1, 3, 1, 3, 1, 1],
        VisionTransformerLAPS: [1, 3, 1]
    }[backbone]
    assert levels == want


@BACKBONES
def test_options_reach_every_attention(backbone):
    model = _build(backbone, attention='3d', shift='plain',
                   shift_fraction=1 / 8, shift_first='previous')
    assert {m.extra_repr() for m in _mixings(model)} == {
        'num_frames=8, attention=3d, shift=plain, fraction=0.125, '
        'first=previous'}


@BACKBONES
def test_options_reach_the_layers(backbone):
    ratio = {} if backbone is Visformer else dict(mlp_ratio=2)
    model = backbone(**TINY[backbone], in_channels=5, **ratio)
    assert model(torch.randn(1, 5, T, 64, 64)).isfinite().all()
    for name, module in model.named_modules():
        if name.endswith('fc1'):
            assert module.out_features == 2 * module.in_features


def test_rest_accepts_frames_of_any_size():
    y = _build(ResT).eval()(torch.randn(1, 3, T, 70, 101))
    assert y.shape == (1, 128, T, 3, 4) and y.isfinite().all()


@BACKBONES
@pytest.mark.parametrize('kwargs, message', [
    (dict(attention='x'), "attention .*'x'"),
    (dict(shift_first='x'), "shift_first .*'x'"),
    (dict(shift_fraction=0.7), 'shift_fraction.*0.7'),
    (dict(pyramid=()), 'pyramid'),
    (dict(pyramid=(1, 4)), '8 frames form no pairs at the pyramid level 4'),
    (dict(num_frames=7), '7 frames form no pairs')])
def test_rejects(backbone, kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(backbone, **kwargs)


@pytest.mark.parametrize('backbone', [Visformer, ResT])
def test_rejects_token_shift_without_class_token(backbone):
    with pytest.raises(ValueError, match="shift .*'token'"):
        _build(backbone, shift='token')


@pytest.mark.parametrize('backbone, kwargs, message', [
    (VisionTransformerLAPS, dict(img_size=70), '70.* by patch_size=16'),
    (Visformer, dict(img_size=31), 'img_size must be at least 32, got 31')])
def test_rejects_sizes(backbone, kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(backbone, **kwargs)


def test_token_shift_moves_the_class_token_before_each_branch():
    model = _build(VisionTransformerLAPS, attention='2d', shift='token')
    model = model.double().eval()
    block, x = model.blocks[0], torch.randn(T, 17, 32).double()

    def shifted(x):
        out = x.clone()
        out[:, 0, :16] = 0
        out[:-1, 0, :8] = x[1:, 0, :8]
        out[1:, 0, 8:16] = x[:-1, 0, 8:16]
        return out

    want = shifted(x)
    want = want + block.attn(block.attn_norm(want))
    want = shifted(want)
    want = want + block.mlp(block.mlp_norm(want))
    assert torch.allclose(block(x), want, atol=1e-12)


def _bn(x, norm):
    return F.batch_norm(x, norm.running_mean, norm.running_var, norm.weight,
                        norm.bias, eps=1e-5)


def _ln(x, norm, eps):
    return F.layer_norm(x, x.shape[-1:], norm.weight, norm.bias, eps)


def _mlp(x, mlp):
    x = F.gelu(x @ mlp.fc1.weight.T + mlp.fc1.bias)
    return x @ mlp.fc2.weight.T + mlp.fc2.bias


def _visformer(model, x):
    """Process frames [T, 3, H, W], layer by layer."""
    conv, norm, _ = model.stem
    x = _bn(F.conv2d(x, conv.weight, stride=2, padding=3), norm).relu()
    for stage, size in ((1, 4), (2, 2), (3, 2)):
        patch = getattr(model, f'patch_embed{stage}')
        x = F.conv2d(x, patch.proj.weight, patch.proj.bias, size)
        x = _bn(x, patch.norm) + getattr(model, f'pos_embed{stage}')
        for block in getattr(model, f'stage{stage}'):
            if stage > 1:
                y = block.attn(_bn(x, block.norm1).permute(0, 2, 3, 1))
                x = x + y.permute(0, 3, 1, 2)
            y = F.gelu(F.conv2d(_bn(x, block.norm2), block.mlp.conv1.weight))
            if stage == 1:
                y = F.gelu(F.conv2d(
                    y, block.mlp.conv2.weight, padding=1, groups=8))
            x = x + F.conv2d(y, block.mlp.conv3.weight)
    return _bn(x, model.norm)


def _pixel_attention(x, pos):
    weight, bias = pos.pa_conv.parameters()
    y = F.conv2d(x, weight, bias, padding=1, groups=x.shape[1])
    return x / (1 + (-y).exp())


def _rest(model, x):
    stem = model.stem
    x = F.conv2d(x, stem.conv1.weight, stride=2, padding=1)
    x = F.conv2d(_bn(x, stem.norm1).relu(), stem.conv2.weight, padding=1)
    x = F.conv2d(_bn(x, stem.norm2).relu(), stem.conv3.weight, stride=2,
                 padding=1)
    x = _pixel_attention(x, stem.pos)
    for stage in (1, 2, 3, 4):
        if stage > 1:
            patch = getattr(model, f'patch_embed_{stage}')
            x = F.conv2d(x, patch.conv.weight, patch.conv.bias, 2, 1)
            x = _pixel_attention(_bn(x, patch.norm), patch.pos)
        x = x.permute(0, 2, 3, 1)
        for block in getattr(model, f'stage{stage}'):
            x = x + block.attn(_ln(x, block.attn_norm, 1e-5))
            x = x + _mlp(_ln(x, block.mlp_norm, 1e-5), block.mlp)
        x = x.permute(0, 3, 1, 2)
    return _ln(x.permute(0, 2, 3, 1), model.norm, 1e-5).permute(0, 3, 1, 2)


def _vit(model, x):
    weight, bias = model.patch_embed.projection.parameters()
    x = F.conv2d(x, weight, bias, 16).flatten(2).mT
    x = torch.cat([model.cls_token.expand(len(x), -1, -1), x], 1)
    x = x + model.pos_embed
    for block in model.blocks:
        x = x + block.attn(_ln(x, block.attn_norm, 1e-6))
        x = x + _mlp(_ln(x, block.mlp_norm, 1e-6), block.mlp)
    return _ln(x[:, 0], model.norm, 1e-6)


@pytest.mark.parametrize('backbone, by_hand', [
    (Visformer, _visformer), (ResT, _rest), (VisionTransformerLAPS, _vit)],
    ids=lambda x: x.__name__.strip('_'))
def test_matches_explicit_network(backbone, by_hand):
    """With transcribed attention; the next test covers ResT's attention."""
    model = _build(backbone).double().eval()
    for value in model.state_dict().values():
        if value.dim() == 1:
            value.uniform_(0.5, 1.5)
    clip = _clips().double()
    with torch.no_grad():
        got, want = model(clip)[0].transpose(0, 1), by_hand(
            transcribe(model), clip[0].transpose(0, 1))
    assert relative(got, want) < 1e-10


def test_rest_attention_matches_explicit_attention():
    model = _build(ResT).double().eval()
    attn = model.stage2[1].attn
    x = torch.randn(T, 8, 8, 32).double()
    reduced = attn.sr(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    reduced = attn.sr_norm(reduced).flatten(1, 2)
    level = attn.mixing.level
    q, kv = attn.q(x.flatten(1, 2)), attn.kv(reduced)
    step = T // 2**level
    out = torch.empty_like(q)
    for a in (t for t in range(T) if t // step % 2 == 0):
        queries = torch.cat([q[a], q[a + step]])
        k, v = torch.cat([kv[a], kv[a + step]]).chunk(2, -1)
        scores = torch.stack([
            queries[:, g * 16:(g + 1) * 16] @ k[:, g * 16:(g + 1) * 16].T / 4
            for g in (0, 1)])
        weight, bias = attn.transform_conv.parameters()
        weights = [(sum(w * s for w, s in zip(weight[g].flatten(), scores))
                    + bias[g]).softmax(-1) for g in (0, 1)]
        weights = [(w - w.mean()) / (w.var(unbiased=False) + 1e-5).sqrt()
                   for w in weights]
        y = torch.cat(
            [weights[g] @ v[:, g * 16:(g + 1) * 16] for g in (0, 1)], -1)
        out[a], out[a + step] = y.chunk(2)
    moved = out.clone()
    for g in (0, 16):
        moved[:, :, g:g + 4] = 0
        moved[:-1, :, g:g + 2] = out[1:, :, g:g + 2]
        moved[1:, :, g + 2:g + 4] = out[:-1, :, g + 2:g + 4]
    want = attn.proj(moved).view(x.shape)
    assert torch.allclose(attn(x), want, atol=1e-10)


_VISFORMER = dict(type='Visformer', img_size=64, arch=dict(
    stem_channels=8, embed_dims=32, depths=(2, 3, 3), num_heads=2))
_VIT = dict(type='VisionTransformerLAPS', img_size=48, mlp_ratio=2, arch=dict(
    embed_dims=48, num_layers=5, num_heads=3))
# Options of the released networks by the name of the golden file.
GOLDENS = dict(
    visformer_laps=dict(_VISFORMER, pyramid=(1, 2, 3, 2, 3, 1)),
    visformer_ps=dict(_VISFORMER, attention='2d'),
    visformer_plain_shift=dict(_VISFORMER, attention='2d', shift='plain'),
    visformer_base3d=dict(_VISFORMER, attention='3d', shift='none'),
    rest_laps=dict(type='ResT', mlp_ratio=2, arch=dict(
        embed_dims=16, depths=(1, 1, 3, 1), num_heads=(1, 2, 4, 8))),
    vit_laps=_VIT,
    tokshift=dict(_VIT, attention='2d', shift='token'))


@pytest.mark.parametrize('name', GOLDENS)
def test_golden_released_model(golden, name):
    """Outputs of the released model with its converted weights."""
    g = golden(f'laps/golden_{name}.pt')
    width = g['state_dict']['base_model.head.weight'].shape[1]
    model = released(
        'laps', g['state_dict'], dict(num_frames=8, **GOLDENS[name]),
        dict(type='LAPSHead', num_classes=10, in_channels=width))
    levels = g['config'].get('pyramid_R_per_attention_layer')
    if levels is not None:
        assert [m.level for m in _mixings(model)] == levels
    clips = g['input'].transpose(1, 2)
    tolerance = 1e-4 if name == 'rest_laps' else 1e-5
    assert relative(outputs_of(model, clips)[0], g['output']) < tolerance
    frames = model.cls_head.frame_scores(model.backbone(clips))
    assert relative(frames, g['per_frame']) < tolerance
