# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare ViViT with a short reference of VideoMAE, and with transformers."""
import math
import re

import pytest
import torch
import torch.nn.functional as F
from convert.naive_vit import HEADS, LAYERS, D, run_blocks
from helpers import relative
from mmaction.registry import MODELS

from mmvidattn.apis import load_config
from mmvidattn.convert import convert

# All published models use 16 frames of 224 x 224.
PATCH, FRAMES, SIDE, CLASSES = 56, 16, 224, 5
GRID = FRAMES // 2, SIDE // PATCH, SIDE // PATCH


def _authors(fine_tuned, version=1):
    """Return tensors with the authors' names, fine-tuned or pre-trained."""
    torch.manual_seed(0)
    state = {'patch_embed.proj.weight': torch.randn(
        D, 3, 2, PATCH, PATCH) * 0.01, 'patch_embed.proj.bias': torch.randn(D)}
    shapes = {'attn.q_bias': (D, ), 'attn.v_bias': (D, ),
              'attn.qkv.weight': (3 * D, D)}
    for name, *shape in (('norm1', D), ('attn.proj', D, D), ('norm2', D),
                         ('mlp.fc1', 4 * D, D), ('mlp.fc2', D, 4 * D)):
        shapes.update({f'{name}.weight': shape, f'{name}.bias': shape[:1]})
    if version == 2:
        shapes.update(gamma_1=(D, ), gamma_2=(D, ))
    for i in range(LAYERS):
        for name, shape in shapes.items():
            state[f'blocks.{i}.{name}'] = torch.randn(shape) * (
                1 if len(shape) == 1 else 0.3)
    norm = 'fc_norm' if fine_tuned else 'norm'
    state.update({f'{norm}.weight': torch.randn(D),
                  f'{norm}.bias': torch.randn(D)})
    if fine_tuned:
        return {**state, 'head.weight': torch.randn(CLASSES, D),
                'head.bias': torch.randn(CLASSES)}
    return {
        **{f'encoder.{name}': value for name, value in state.items()},
        'decoder.blocks.0.norm1.weight': torch.randn(D),
        'encoder_to_decoder.weight': torch.randn(D, D),
        'mask_token': torch.randn(1, 1, D)
    }


def _naive(state, clips):
    """Map clips [N, 3, T, S, S] to the last block's tokens [N, n, D]."""
    # 'encoder.blocks.0.attn.qkv.weight' is 'qkv0.weight'.
    net = {re.sub(r'^blocks\.(\d)\.(?:attn\.|mlp\.)?(\w+)', r'\2\1',
                  name.removeprefix('encoder.')).replace('gamma_', 'scale'):
           value for name, value in state.items()}
    for i in range(LAYERS):
        q_bias, v_bias = (net[f'{part}_bias{i}'] for part in 'qv')
        net[f'qkv{i}.bias'] = torch.cat([q_bias, 0 * q_bias, v_bias])
    x = F.conv3d(clips, net['patch_embed.proj.weight'],
                 net['patch_embed.proj.bias'],
                 stride=(2, PATCH, PATCH)).flatten(2).mT
    table = torch.tensor([[
        (math.cos if c % 2 else math.sin)(n / 10000**(2 * (c // 2) / D))
        for c in range(D)] for n in range(x.shape[1])], dtype=x.dtype)
    return run_blocks(net, x + table, F.gelu, 1e-6)


def _model(pool, **options):
    options = dict(num_frames=FRAMES, img_size=SIDE, patch_size=PATCH,
                   embed_dims=D, num_layers=LAYERS, num_heads=HEADS) | options
    return MODELS.build(dict(
        type='Recognizer3D',
        backbone=dict(type='ViViT', pool=pool, gelu_approximate='none',
                      **options),
        cls_head=dict(type='ViViTHead', num_classes=CLASSES,
                      in_channels=options['embed_dims']))).eval()


@pytest.mark.parametrize('fine_tuned, version', [
    (True, 1), (True, 2), (False, 1)])
def test_converts_a_network_completely(fine_tuned, version):
    """A network that is only pre-trained returns the mean of its tokens."""
    state = _authors(fine_tuned, version)
    model = _model('mean_norm' if fine_tuned else 'mean')
    if not fine_tuned:
        model.cls_head = torch.nn.Identity()
    model.load_state_dict(convert('vivit_videomae', state))
    state = {name: value.double() for name, value in state.items()}
    clips = torch.randn(2, 3, FRAMES, SIDE, SIDE).double()
    want = _naive(state, clips)
    if fine_tuned:
        want = want.mean(1, keepdim=True)
    norm = 'fc_norm' if fine_tuned else 'encoder.norm'
    want = F.layer_norm(want, (D, ), state[f'{norm}.weight'],
                        state[f'{norm}.bias'], 1e-6).mean(1)
    if fine_tuned:
        want = F.linear(want, state['head.weight'], state['head.bias'])
    model = model.double()
    with torch.no_grad():
        got = model.cls_head(model.backbone(clips))
    # The table of positions is stored in float32.
    assert relative(got, want) < 1e-6


def _old_names(state):
    """Rename the biases of Q and V as in the published files."""
    return {
        name.replace('query.bias', 'q_bias').replace('value.bias', 'v_bias'):
        value for name, value in state.items()}


@pytest.mark.parametrize('width, heads, patch, num_frames, names', [
    (12, 3, 56, FRAMES, dict), (12, 3, 56, 8, _old_names),
    (32, 4, 32, FRAMES, _old_names), (48, 2, 112, 8, dict)])
def test_equals_transformers(width, heads, patch, num_frames, names):
    transformers = pytest.importorskip('transformers')
    torch.manual_seed(0)
    source = transformers.VideoMAEForVideoClassification(
        transformers.VideoMAEConfig(
            hidden_size=width, num_hidden_layers=2, intermediate_size=40,
            num_attention_heads=heads, patch_size=patch, image_size=SIDE,
            num_frames=num_frames, num_labels=CLASSES, use_mean_pooling=True,
            layer_norm_eps=1e-6)).eval()
    # The value of the authors' code.
    source.fc_norm.eps = 1e-6
    with torch.no_grad():
        for p in source.parameters():
            p.normal_(std=1 if p.dim() == 1 else 0.2 / (p.dim() - 1))
    state = names(source.state_dict())
    if num_frames != FRAMES:
        # Files do not store the positions, which the converter computes for
        # 16 frames.
        state['embeddings.position_embeddings'] = (
            source.videomae.embeddings.position_embeddings)
    model = _model('mean_norm', num_frames=num_frames, patch_size=patch,
                   embed_dims=width, num_layers=2, num_heads=heads,
                   mlp_ratio=40 / width)
    model.load_state_dict(convert('vivit_videomae', state))
    clips = torch.randn(2, 3, num_frames, SIDE, SIDE)
    with torch.no_grad():
        features = source.videomae(clips.transpose(1, 2)).last_hidden_state
        got = model.backbone(clips)
        pairs = [(got, source.fc_norm(features.mean(1))),
                 (model.cls_head(got), source(clips.transpose(1, 2)).logits)]
    for ours, theirs in pairs:
        assert (ours - theirs).abs().max() < 1e-5 * max(
            1, theirs.abs().max())


def test_published_classifier_fits_its_config():
    transformers = pytest.importorskip('transformers')
    with torch.device('meta'):
        source = transformers.VideoMAEForVideoClassification(
            transformers.VideoMAEConfig(num_labels=400))
        cfg = load_config('vivit_videomae_b_k400').model
        # Mixup needs data.
        cfg.data_preprocessor.pop('blending')
        model = MODELS.build(cfg)
    converted = convert('vivit_videomae', _old_names(source.state_dict()))
    model.load_state_dict(converted, assign=True)
