# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Compare ViViT with VideoMAE of transformers, and read the authors' files."""
import math

import pytest
import torch
from mmaction.registry import MODELS

from mmvidattn.apis import load_config
from mmvidattn.convert import convert
from mmvidattn.convert.rename import rename

# All published models use 16 frames of 224 x 224.
PATCH, FRAMES, SIDE, CLASSES = 56, 16, 224, 5
D, HEADS, LAYERS = 12, 3, 2
# From our names to the authors' names in files of fine-tuned models.
AUTHORS = (
    ('^cls_head.fc_cls', 'head'), (r'^backbone\.(encoder\.)?', ''),
    ('embed.projection', 'embed.proj'), ('^norm', 'fc_norm'),
    ('attn_norm', 'norm1'), ('mlp_norm', 'norm2'))


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
def test_reads_the_files_of_the_authors(fine_tuned, version):
    torch.manual_seed(0)
    state = {name: torch.randn_like(x)
             for name, x in _model('mean_norm').state_dict().items()}
    named = {rename(name, AUTHORS): x for name, x in state.items()
             if not name.endswith(('qkv.bias', 'pos_embed'))}
    for i in range(LAYERS):
        block, ours = f'blocks.{i}', f'backbone.encoder.blocks.{i}'
        q, k, v = state[f'{ours}.attn.qkv.bias'].chunk(3)
        k.zero_()
        named |= {f'{block}.attn.q_bias': q, f'{block}.attn.v_bias': v}
        for number, layer in (1, 'attn.proj'), (2, 'mlp.fc2'):
            if version == 2:
                scale = named[f'{block}.gamma_{number}'] = torch.randn(D)
                state[f'{ours}.{layer}.weight'] = (
                    scale[:, None] * named[f'{block}.{layer}.weight'])
                state[f'{ours}.{layer}.bias'] = (
                    scale * named[f'{block}.{layer}.bias'])
    if not fine_tuned:
        for name in 'weight', 'bias':
            del state[f'cls_head.fc_cls.{name}'], named[f'head.{name}']
        named = {f'encoder.{name}'.replace('fc_norm', 'norm'): x
                 for name, x in named.items()} | {
            'decoder.blocks.0.norm1.weight': torch.randn(D),
            'encoder_to_decoder.weight': torch.randn(D, D),
            'mask_token': torch.randn(1, 1, D)}
    got = convert('vivit_videomae', named)
    assert got.keys() == state.keys()
    table = [[(math.cos if c % 2 else math.sin)(
        n / 10000**(2 * (c // 2) / D)) for c in range(D)]
        for n in range(FRAMES // 2 * (SIDE // PATCH)**2)]
    state['backbone.encoder.pos_embed'] = torch.tensor(table).view_as(
        got['backbone.encoder.pos_embed'])
    for name, x in got.items():
        torch.testing.assert_close(x, state[name], msg=name)


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
        for ours, theirs in (
                (got, source.fc_norm(features.mean(1))),
                (model.cls_head(got), source(clips.transpose(1, 2)).logits)):
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
