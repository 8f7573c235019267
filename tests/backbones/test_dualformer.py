# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
import json
import math
import warnings

import pytest
import torch
from backbones.families import TINY, outputs_of, released
from helpers import relative
from mmaction.registry import MODELS

from mmvidattn.backbones import DualFormer
from mmvidattn.convert import convert

ARCH = TINY[DualFormer]['arch']


@pytest.mark.parametrize('frames, height, width', [
    (1, 30, 50), (7, 96, 100)])
def test_accepts_sizes_that_the_released_code_rejects(frames, height, width):
    """Build a tiny model with the kernels of the released checkpoints."""
    torch.manual_seed(0)
    model = DualFormer(ARCH).train()
    # BatchNorm cannot train with a single value.
    batch = 2 if frames == 1 else 1
    y = model(torch.randn(batch, 3, frames, height, width))
    assert y.shape == (batch, 64, -(-frames // 2), -(-height // 32),
                       -(-width // 32))
    (y * torch.randn_like(y)).sum().backward()
    for name, p in model.named_parameters():
        assert p.grad.isfinite().all() and p.grad.abs().max() > 0, name


@pytest.mark.parametrize('frames, name', [(32, 'tiny'),
                                          (16, 'tiny_16f_ucf101')])
def test_golden_kernels(frames, name, shared_dir):
    want = json.loads((shared_dir / 'goldens/dualformer/gp_kernels.json'
                       ).read_text())[f'dualformer_{name}']
    with torch.device('meta'):
        blocks = DualFormer(num_frames=frames).blocks
    for stage, golden in zip(blocks, want.values()):
        levels = stage[1].attn.pyramid.levels
        kernels = []
        if golden['has_sr'] and math.prod(golden['fine_kernel']) > 1:
            kernels = [golden['fine_kernel'], *(golden['coarse'] or [])]
        assert [[*x.kernel_size] if i == 0 else [
            [*x.conv1.kernel_size], [*x.conv2.kernel_size]]
            for i, x in enumerate(levels)] == kernels


@pytest.mark.parametrize('frames', [8, 12, 32])
def test_resized_kernels_keep_their_sums(frames):
    """The response to a still video does not change."""
    state = DualFormer(ARCH).state_dict()
    model = DualFormer(ARCH, num_frames=frames)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        model.load_state_dict(state)
    assert len(caught) == (frames != 32)
    assert all(str(w.message).startswith('resized ') and
               'blocks.0.1.attn.pyramid' in str(w.message) for w in caught)
    for name, value in model.state_dict().items():
        if value.dim() == 5 and not name.startswith('pegs'):
            assert torch.allclose(
                value.sum((2, 3, 4)), state[name].sum((2, 3, 4)), rtol=1e-4,
                atol=1e-5), name
    kernel = model.blocks[0][1].attn.pyramid.levels[0].weight
    assert kernel.shape[2] == max(frames // 2 // 8, 1)


def _options_of(config):
    """Convert options of the released backbone."""
    return dict(
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


@pytest.mark.parametrize('case', ['reduced', 'reduced_tl', 'geom224',
                                  'geom224_16f'])
def test_golden_released_model(golden, case):
    """Outputs of the released model with its converted weights."""
    g = golden(f'dualformer/golden_{case}.pt')
    with_tokens = any('token_linear' in name for name in g['state_dict'])
    options = _options_of(g['config'])
    model = released('dualformer', g['state_dict'], options, dict(
        type='TokenLabelHead' if with_tokens else 'I3DHead',
        num_classes=g['config']['head_num_classes'],
        in_channels=8 * options['arch']['embed_dims']))
    clips = g['input'] if 'input' in g else g['input_small'].repeat_interleave(
        g['upsample'], 3).repeat_interleave(g['upsample'], 4)
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
        assert relative(outputs_of(model, clips)[0], g['output']) < 1e-5
        for name, want in g.get('intermediate', {}).items():
            assert relative(taps[name], want) < 1e-5, name
        if 'features' in g:
            feats = model.backbone(clips)
            assert relative(feats, g['features']) < 1e-5
        if case == 'reduced_tl':
            assert relative(model.cls_head.forward_tokens(feats).flatten(1, 3),
                           g['token_preds'].flatten(1, -2)) < 1e-5
        if 'output_first16frames' in g:
            y, _ = outputs_of(model, clips[:, :, :16])
            assert relative(y, g['output_first16frames']) < 1e-5


def test_golden_inflation(golden):
    g = golden('dualformer/golden_inflate.pt')
    model = MODELS.build(_options_of(g['config']))
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
