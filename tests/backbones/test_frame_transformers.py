# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Visformer, ResT and ViT with LAPS: what they share, and their goldens."""
import pytest
import torch
import torch.nn.functional as F
from backbones.families import FRAMES, OPTIONS, TINY
from backbones.families import build as _build
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from torch import nn
from torch.overrides import TorchFunctionMode

from mmvidattn.backbones import ResT, Visformer, VisionTransformerLAPS
from mmvidattn.convert import convert
from mmvidattn.layers.temporal import FrameMixing
from mmvidattn.utils.complexity import count_complexity

T = 8
BACKBONES = pytest.mark.parametrize(
    'backbone', FRAMES, ids=lambda x: x.__name__)


def _clips(num_frames=T, side=64, batch=1):
    return torch.randn(batch, 3, num_frames, side, side)


def _mixings(model):
    return [m for m in model.modules() if isinstance(m, FrameMixing)]


@BACKBONES
def test_2d_is_the_network_of_each_frame(backbone):
    model = _build(backbone, attention='2d', shift='none').double().eval()
    alone = _build(
        backbone, num_frames=1, attention='2d', shift='none').double().eval()
    clips = _clips(batch=2).double()
    with torch.no_grad():
        got = model(clips)
        want = torch.stack(
            [alone(clips[:, :, t:t + 1])[:, :, 0] for t in range(T)], dim=2)
    assert torch.allclose(got, want, atol=1e-10)


@BACKBONES
def test_leap_reaches_other_frames_and_2d_none(backbone):
    for kwargs, reached in (({}, True), (OPTIONS[backbone]['2d'], False)):
        model = _build(backbone, **kwargs).double().eval()
        clips = _clips().double()
        other = clips.clone()
        other[:, :, 0] += 1
        with torch.no_grad():
            y, changed = model(clips), model(other)
        assert (not torch.equal(y[:, :, 1:], changed[:, :, 1:])) == reached


@BACKBONES
def test_pyramid_is_repeated_over_the_attentions(backbone):
    levels = [m.level for m in _mixings(_build(backbone, pyramid=(1, 3)))]
    want = {
        Visformer: [1, 3, 1, 3],
        # Anew in each stage.
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
    model = backbone(**TINY[backbone], in_channels=5, init_std=0.1, **ratio)
    model.init_weights()
    clips = torch.randn(1, 5, T, 64, 64)
    assert model(clips).isfinite().all()
    for name in model.position_grids:
        assert getattr(model, name).std().item() == pytest.approx(
            0.1, rel=0.2)
    for name, module in model.named_modules():
        if name.endswith('fc1'):
            assert module.out_features == 2 * module.in_features
        elif name.endswith('attn.proj'):
            assert module.weight.std().item() == pytest.approx(0.1, rel=0.3)


def test_rest_takes_frames_of_any_size():
    y = _build(ResT).eval()(torch.randn(1, 3, T, 70, 101))
    assert y.shape == (1, 128, T, 3, 4) and y.isfinite().all()


@BACKBONES
@pytest.mark.parametrize('kwargs, message', [
    (dict(attention='x'), "attention must be one of .*'x'"),
    (dict(shift='x'), "shift of .* must be one of .*'x'"),
    (dict(shift_first='x'), "shift_first must be one of .*'x'"),
    (dict(shift_fraction=0.7), 'shift_fraction.*0.7'),
    (dict(pyramid=()), 'pyramid'),
    (dict(pyramid=(1, 4)), '8 frames form no pairs at the pyramid level 4'),
    (dict(num_frames=7), '7 frames form no pairs')])
def test_rejects(backbone, kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(backbone, **kwargs)


@pytest.mark.parametrize('backbone', [Visformer, ResT])
def test_rejects_the_token_shift_without_class_token(backbone):
    with pytest.raises(ValueError, match=f"shift of {backbone.__name__}"):
        _build(backbone, shift='token')


@pytest.mark.parametrize('backbone, kwargs, message', [
    (VisionTransformerLAPS, dict(img_size=70), '70.* by patch_size=16'),
    (Visformer, dict(img_size=31), 'img_size must be at least 32, got 31')])
def test_rejects_sizes(backbone, kwargs, message):
    with pytest.raises(ValueError, match=message):
        _build(backbone, **kwargs)


def test_token_shift_moves_the_residual_stream_of_the_class_token():
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
    """Frames [T, 3, H, W], layer by layer but for the attention itself."""
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
def test_matches_a_network_written_out(backbone, by_hand):
    """All but the attentions, which have tests of their own."""
    model = _build(backbone).double().eval()
    for value in model.state_dict().values():
        if value.dim() == 1:
            value.uniform_(0.5, 1.5)
    clip = _clips().double()
    with torch.no_grad():
        got, want = model(clip)[0].transpose(0, 1), by_hand(
            model, clip[0].transpose(0, 1))
    assert (got - want).norm() < 1e-10 * want.norm()


def test_rest_attention_matches_one_written_out():
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


class _CountInstanceNorms(TorchFunctionMode):
    """Those of the attention weights of ResT, which have no weights."""
    cost = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.instance_norm:
            self.cost += 4 * args[0].numel()
        return function(*args, **(kwargs or {}))


def _fvcore_rest(model, clips):
    """What fvcore counts beside products: norms and the pooling."""
    costs = {nn.BatchNorm2d: 2, nn.LayerNorm: 5}
    total = []
    handles = [
        module.register_forward_hook(
            lambda m, args, out: total.append(costs[type(m)] * out.numel()))
        for module in model.modules() if type(module) in costs
    ]
    with _CountInstanceNorms() as norms:
        model(clips)
    for handle in handles:
        handle.remove()
    return sum(total) + norms.cost


CASES = {
    'visformer-2d':
    (Visformer, dict(attention='2d', shift='none'), 39.758, 39.074),
    'visformer-periodic':
    (Visformer, dict(attention='2d', shift='periodic'), 39.758, 39.074),
    'visformer-3d':
    (Visformer, dict(attention='3d', shift='none'), 39.758, 46.509),
    'visformer-laps': (Visformer, {}, 39.758, 40.136),
    'visformer-b': (Visformer, dict(img_size=320), 40.032, 86.42),
    'visformer-l':
    (Visformer, dict(img_size=320, num_frames=16), 40.032, 172.84),
    'visformer-h':
    (Visformer, dict(img_size=320, num_frames=32), 40.032, 345.68),
    'visformer-e':
    (Visformer, dict(img_size=360, num_frames=32), 40.162, 434.02),
    'rest-s-2d': (ResT, dict(attention='2d', shift='none'), 13.372, 16.855),
    'rest-s': (ResT, {}, 13.372, 17.628),
    'rest-b': (ResT, dict(arch='base'), 29.866, 38.31),
    'rest-l':
    (ResT, dict(arch='large', num_frames=32, side=320), 51.215, 595.40),
    'vit-2d': (VisionTransformerLAPS, dict(attention='2d', shift='none'),
               86.106, 140.66),
    'vit-laps': (VisionTransformerLAPS, {}, 86.106, 146.38),
    'tokshift': (VisionTransformerLAPS, dict(attention='2d', shift='token'),
                 86.106, 140.66),
    'tokshift-384': (VisionTransformerLAPS,
                     dict(attention='2d', shift='token', img_size=384),
                     86.4, 444.31),
    'tokshift-16': (VisionTransformerLAPS,
                    dict(attention='2d', shift='token', num_frames=16),
                    86.106, 281.32),
    'tokshift-l': (VisionTransformerLAPS,
                   dict(arch='large', attention='2d', shift='token',
                        img_size=384, num_frames=12), 304.1, 2294.5),
}


# Those that count what another does, longer or larger, take some time.
LONGER = ('visformer-periodic', 'visformer-b', 'visformer-l', 'visformer-h',
          'rest-b', 'rest-l', 'tokshift-384', 'tokshift-16', 'tokshift-l')


@pytest.mark.parametrize('case', [
    pytest.param(case, marks=[pytest.mark.slow] * (case in LONGER))
    for case in CASES])
def test_has_the_parameters_and_operations_of_the_released_model(case):
    from mmvidattn.heads import LAPSHead
    backbone, kwargs, mparams, gmacs = CASES[case]
    kwargs = dict(kwargs)
    side = kwargs.pop('side', kwargs.get('img_size', 224))
    frames = kwargs.get('num_frames', 8)
    with torch.device('meta'):
        model = backbone(**kwargs).eval()
        head = LAPSHead(400, model.norm.weight.numel())
        clips = torch.empty(1, 3, frames, side, side)
        ours = count_complexity(nn.Sequential(model, head), clips)
        rest = _fvcore_rest(model, clips)
        y = model(clips)
    pooled = y.numel() if y.dim() == 5 else 0
    assert not ours.uncounted

    def digits(value):
        return len(str(value).split('.')[1])

    assert round(ours.params / 1e6, digits(mparams)) == mparams
    total = ours.macs + rest + pooled
    assert round(total / 1e9, digits(gmacs)) == pytest.approx(
        gmacs, rel=3e-4)


GOLDENS = {
    'visformer_laps': (Visformer, 1e-5),
    'visformer_ps': (Visformer, 1e-5),
    'visformer_plain_shift': (Visformer, 1e-5),
    'visformer_base3d': (Visformer, 1e-5),
    'rest_laps': (ResT, 1e-4),
    'vit_laps': (VisionTransformerLAPS, 1e-5),
    'tokshift': (VisionTransformerLAPS, 1e-5),
}


def _options_of(backbone, told):
    """Ours, of what a golden tells of its network."""
    options = dict(
        attention=told['attention'],
        shift=told['shift'],
        pyramid=told.get('pyramid_R_per_attention_layer', (1, )),
        shift_fraction=1 / told['fold_div'] if told['fold_div'] else 0)
    if backbone is Visformer:
        return dict(
            arch=dict(
                stem_channels=told['init_channels'],
                embed_dims=told['embed_dim'],
                depths=told['depth'],
                num_heads=told['num_heads']),
            img_size=told['img_size'],
            **options)
    if backbone is ResT:
        levels = [level + 1
                  for level in told['upstream_kwargs']['s2_skip_level']]
        return dict(
            options,
            arch=dict(
                embed_dims=told['embed_dims'][0],
                depths=told['depths'],
                num_heads=told['num_heads']),
            mlp_ratio=told['mlp_ratios'][0],
            pyramid=levels)
    return dict(
        arch=dict(
            embed_dims=told['embed_dim'],
            num_layers=told['depth'],
            num_heads=told['num_heads']),
        img_size=told['img_size'],
        mlp_ratio=told['mlp_ratio'],
        **options)


@pytest.mark.parametrize('name', GOLDENS)
def test_golden_released_model(golden, name):
    """The released model, its weights through ``convert``, strictly."""
    init_default_scope('mmaction')
    backbone, tolerance = GOLDENS[name]
    g = golden(f'laps/golden_{name}.pt')
    options = _options_of(backbone, g['config'])
    model = MODELS.build(
        dict(
            type='Recognizer3D',
            backbone=dict(type=backbone.__name__, num_frames=8, **options),
            cls_head=dict(
                type='LAPSHead',
                num_classes=10,
                in_channels=g['state_dict']['base_model.head.weight'].shape[
                    1]))).eval()
    model.load_state_dict(convert('laps', g['state_dict']), strict=True)
    levels = g['config'].get('pyramid_R_per_attention_layer')
    if levels is not None:
        assert [m.level for m in _mixings(model)] == list(levels)
    clips = g['input'].transpose(1, 2)
    with torch.no_grad():
        y = model(clips[:, None], mode='tensor', stage='head')
        frames = model.cls_head.frame_scores(model.backbone(clips))
    assert (y - g['output']).norm() < tolerance * g['output'].norm()
    assert (frames - g['per_frame']).norm() < \
        tolerance * g['per_frame'].norm()
