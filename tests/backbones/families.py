# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tiny models of all registered backbones, for tests of several files.

A backbone that is not named here gets general options, see :data:`SMALL`.
"""
import torch
from mmaction.registry import MODELS
from mmengine.model import BaseModule
from registered import arguments_for, classes_of
from torch import nn
from torch.utils.checkpoint import checkpoint

import mmvidattn.backbones as zoo
from mmvidattn.backbones.base import BaseBackbone
from mmvidattn.convert import convert
from mmvidattn.utils.arguments import to_pair

FRAMES = zoo.Visformer, zoo.ResT, zoo.VisionTransformerLAPS


class Attention(nn.Module):
    """Attention of 8 channels with timm's conventions."""

    def __init__(self, **more):
        super().__init__()
        self.num_heads = 2
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)
        for name, value in more.items():
            setattr(self, name, value)

    def weigh(self, scores):
        return scores.softmax(-1)

    def forward(self, x, attn_mask=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        y = self.weigh(q @ k.mT / 2) @ v
        return self.proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):

    def __init__(self):
        super().__init__()
        self.attn, self.mlp = Attention(), nn.Linear(8, 8)

    def forward(self, x):
        x = x + self.attn(x)
        return x + self.mlp(x)


class Image(BaseModule):
    """A third-party image network for frames [B T, 3, H, W]."""

    def __init__(self, with_grid=False, init_cfg=None):
        super().__init__(init_cfg)
        self.embed = nn.Conv2d(3, 8, 4, 4)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.LayerNorm(8)
        self.with_grid, self.with_cp = with_grid, False

    def set_grad_checkpointing(self, enable=True):
        self.with_cp = enable

    def forward(self, x):
        x = self.embed(x)
        y = x.flatten(2).mT
        for block in self.blocks:
            y = checkpoint(block, y, use_reentrant=False) if self.with_cp \
                else block(y)
        y = self.norm(y).mT.reshape(x.shape)
        # Like a backbone of mmpretrain, return a tuple of stages.
        return (x, y) if self.with_grid else y.mean((2, 3))


# Options for a backbone that is not in TINY, as far as it takes them.
SMALL = dict(num_frames=8, img_size=64, embed_dims=32, num_layers=2,
             num_heads=2)
TINY = {
    zoo.LinearVideoTransformer: dict(
        num_frames=4, embed_dims=32, num_layers=2, num_heads=2),
    zoo.XViT: dict(
        num_frames=4, img_size=64, embed_dims=32, num_layers=2, num_heads=2),
    zoo.ViViT: dict(
        num_frames=8, img_size=(32, 48), embed_dims=32, num_layers=2,
        num_heads=4),
    # Grids of (4, 16, 16) to (4, 2, 2), and all kinds of kernels.
    zoo.DualFormer: dict(
        arch=dict(embed_dims=8, num_layers=(2, 2, 2, 2),
                  num_heads=(1, 2, 2, 2)),
        num_frames=8, img_size=64, window_size=(2, 4, 4),
        pyramid_sizes=(((2, 4, 4), (2, 2, 2)), ((2, 4, 4), (1, 1, 1)),
                       ((2, 2, 2), ), ())),
    zoo.Visformer: dict(img_size=64, arch=dict(
        stem_channels=8, embed_dims=32, num_layers=(1, 2, 2), num_heads=2)),
    zoo.ResT: dict(arch=dict(
        embed_dims=16, num_layers=(1, 2, 3, 1), num_heads=(1, 2, 4, 8))),
    zoo.VisionTransformerLAPS: dict(
        img_size=64, arch=dict(embed_dims=32, num_layers=3, num_heads=2)),
    zoo.VJEPA2: dict(
        num_frames=4, embed_dims=32, num_layers=2, num_heads=2, mlp_dims=48),
    zoo.InflatedBackbone: dict(
        num_frames=4, pyramid=(1, 2), model=dict(type=Image)),
}
# BNInception is no network for clips: it computes features of frames.
for cls in classes_of('backbones'):
    if issubclass(cls, BaseBackbone):
        TINY.setdefault(cls, arguments_for(cls, **SMALL))
# Options of the variants; each covers another path through the code.
OPTIONS = {
    zoo.LinearVideoTransformer: {
        'default': {},
        'joint': dict(pattern='joint'),
        'windowed': dict(pattern='windowed', window_frames=3),
        'space-time': dict(order='space_time'),
        'paper': dict(
            patch_stride=16, patch_padding=0, img_size=64,
            with_patch_norm=False, with_pos_embed=True, with_dwconv=False,
            order='space_time', shift_placement='both',
            attention=dict(type='LinearAttention', kernel='relu'),
            temporal_shift=dict(mode='window', size=2, alpha=.5),
            spatial_shift=dict(mode='cross', size=1, alpha=.5)),
        'softmax': dict(
            attention=dict(type='SoftmaxAttention'), fixation=None),
        'no-shift': dict(temporal_shift=None, spatial_shift=None),
        'patches-of-3-frames': dict(patch_frames=3),
        'dropout': dict(drop_rate=.1, drop_path_rate=.1),
    },
    zoo.XViT: {
        'default': {},
        'half-clips': dict(
            temporal_shift=dict(mode='tsm', divisor=8, segment_frames=2)),
        'window': dict(temporal_shift=dict(mode='window', size=1, alpha=.5)),
        'no-mixing': dict(temporal_shift=None),
        'linear': dict(
            attention=dict(type='LinearAttention', offset='auto'),
            fixation={}),
        'linformer': dict(attention=dict(type='LinformerAttention')),
        'wide-frames': dict(img_size=(32, 64)),
        'dropout': dict(drop_rate=.1, drop_path_rate=.1),
    },
    zoo.ViViT: {
        'joint': dict(model='joint'),
        'joint-mean': dict(model='joint', pool='mean'),
        'joint-sampled': dict(
            model='joint', tubelet_frames=1, sampled_frames=3),
        'time-space-fixation': dict(
            model='fact_attention',
            attention=dict(type='LinearAttention', offset='auto'),
            fixation={}),
        'encoder': dict(model='fact_encoder', num_temporal_layers=2),
        'encoder-mean': dict(
            model='fact_encoder', num_temporal_layers=1, pool='mean'),
        'time-space': dict(model='fact_attention'),
        'space-time': dict(model='fact_attention', order='space_time'),
        'dot': dict(model='fact_dot'),
        'dropout': dict(
            model='fact_dot', drop_rate=.1, drop_path_rate=.1,
            attention=dict(type='SoftmaxAttention', dropout=.1)),
    },
    zoo.DualFormer: {
        'default': {},
        'mixed': dict(pattern=('LL', 'LG', 'GG', 'LG')),
        'one-scale': dict(pyramid_sizes=(((2, 2, 2), ), ) * 4),
        'three-scales': dict(
            pyramid_sizes=(((4, 8, 8), (2, 4, 4), (1, 2, 2)), ) * 4),
        'whole': dict(pyramid_sizes=((), ) * 4),
        'conv': dict(pooling='conv'),
        'avg': dict(pooling='avg'),
        'paper': dict(pooling='factorized', patch_merging='linear'),
        'no-position': dict(position='none'),
        'relative': dict(position='relative'),
        'padded': dict(window_size=(3, 3, 3), position='relative'),
        'temporal-pooling': dict(temporal_pooling=(2, 1, 2)),
        'long-patches': dict(patch_size=(4, 4, 4)),
        'dropout': dict(drop_rate=.1, drop_path_rate=.1),
    },
    zoo.VJEPA2: {
        'default': {},
        '2.1': dict(version='2.1'),
        'two-layers': dict(out_layers=(0, 1)),
        'dropout': dict(drop_path_rate=.1),
    },
    zoo.InflatedBackbone: {'default': {}},
}
FRAME_OPTIONS = {
    'laps': {},
    '2d': dict(attention='2d', shift='none'),
    '3d': dict(attention='3d', shift='none'),
    'plain': dict(attention='2d', shift='plain'),
    'leap': dict(shift='none'),
    'drop-path': dict(drop_path_rate=0.2),
}
OPTIONS.update(dict.fromkeys(FRAMES, FRAME_OPTIONS))
OPTIONS[zoo.VisionTransformerLAPS] = dict(
    FRAME_OPTIONS, token=dict(attention='2d', shift='token'))
for cls in TINY:
    OPTIONS.setdefault(cls, {'default': {}})
VARIANTS = {
    f'{backbone.__name__}-{name}': (backbone, options)
    for backbone, variants in OPTIONS.items()
    for name, options in variants.items()
}


def build(backbone, **kwargs):
    """Build a tiny initialized model, without zero tensors."""
    torch.manual_seed(0)
    model = backbone(**{**TINY[backbone], **kwargs})
    model.init_weights()
    for p in model.parameters():
        if p.dim() > 1 and backbone in FRAMES:
            nn.init.normal_(p, std=p[0].numel()**-0.5)
        elif p.dim() > 1 and not p.any():
            nn.init.normal_(p, std=0.02)
    return model


def clips_for(model, batch=2, /, **options):
    """Return random clips for a model from :func:`build`."""
    size = options.get('img_size') or {
        zoo.ViViT: (32, 48),
        zoo.InflatedBackbone: (8, 12)}.get(type(model), 64)
    return torch.randn(batch, 3, options.get('num_frames', model.num_frames),
                       *to_pair(size))


def released(source, state_dict, backbone, head):
    """Build a recognizer and load published weights strictly."""
    model = MODELS.build(dict(
        type='Recognizer3D', backbone=backbone, cls_head=head)).eval()
    model.load_state_dict(convert(source, state_dict), strict=True)
    return model


@torch.no_grad()
def outputs_of(model, clips):
    """Return logits of [B, C, T, H, W], and tokens [B T, N, C] per block."""
    taps = {}
    handles = [block.register_forward_hook(
        lambda m, args, y, i=i: taps.update({f'block{i}': y}))
        for i, block in enumerate(getattr(model.backbone, 'blocks', ()))
        if not isinstance(block, nn.ModuleList)]
    logits = model(clips[:, None], mode='tensor', stage='head')
    for handle in handles:
        handle.remove()
    return logits, {name: y.flatten(0, 1).flatten(1, 2)
                    for name, y in taps.items() if y.dim() == 5}
