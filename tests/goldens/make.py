# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Write small goldens: weights, an input and the output.

    cd tests && python -m goldens.make [NAME ...]

They pin today's outputs where the authors' own are not at hand, so write one
anew only where an output is meant to change, and say why in the commit.
"""
import json
import sys
from pathlib import Path

import torch
from goldens.behavior import draw, fill
from mmaction.registry import MODELS
from mmengine.registry import init_default_scope
from safetensors.torch import save_file
from torch import Tensor, nn

from mmvidattn.online import StreamSession, dense_features

FOLDER = Path(__file__).parent
CLIP = dict(num_frames=4, img_size=32)
LINEAR_FF = dict(type='LinearVideoTransformer', **CLIP, patch_size=8,
                 patch_stride=7, patch_padding=4, embed_dims=32, num_layers=2,
                 num_heads=2, mlp_ratio=2)
VIVIT = dict(type='ViViT', **CLIP, patch_size=8, embed_dims=24, num_layers=2,
             num_heads=2, mlp_ratio=2)
DUALFORMER = dict(
    type='DualFormer', num_frames=4, img_size=32, mlp_ratio=2,
    arch=dict(embed_dims=8, num_layers=(2, 1, 1, 1), num_heads=(1, 2, 2, 2)),
    window_size=(2, 4, 4), pyramid_sizes=(((2, 4, 4), (1, 2, 2)), ) * 4)
BACKBONES = dict(
    linear_ff=LINEAR_FF,
    linear_ff_paper=dict(
        LINEAR_FF, patch_frames=3, with_dwconv=False, with_pos_embed=True,
        order='space_time', temporal_shift=dict(mode='window', alpha=0.5),
        spatial_shift=dict(mode='square', alpha=0.25)),
    linear_ff_joint=dict(
        LINEAR_FF, pattern='joint', fixation=dict(mode='separate'),
        shift_placement='both'),
    xvit=dict(type='XViT', **CLIP, patch_size=8, embed_dims=24, num_layers=2,
              num_heads=2, mlp_ratio=2),
    vivit_joint=dict(VIVIT, model='joint'),
    vivit_fact_encoder=dict(
        VIVIT, model='fact_encoder', num_temporal_layers=1),
    vivit_fact_attention=dict(VIVIT, model='fact_attention'),
    vivit_fact_dot=dict(VIVIT, model='fact_dot'),
    laps_visformer=dict(
        type='Visformer', img_size=32, arch=dict(
            stem_channels=4, embed_dims=16, depths=(1, 1, 1), num_heads=2)),
    laps_rest=dict(
        type='ResT', mlp_ratio=2, arch=dict(
            embed_dims=8, depths=(1, 1, 1, 1), num_heads=(1, 2, 2, 2))),
    laps_vit=dict(
        type='VisionTransformerLAPS', img_size=32, mlp_ratio=2, shift='token',
        arch=dict(embed_dims=24, num_layers=2, num_heads=2)),
    dualformer=DUALFORMER,
    dualformer_relative=dict(
        DUALFORMER, position='relative', pooling='avg',
        pattern=('LL', 'LG', 'GG', 'LG')))
TESTRA = dict(
    type='TeSTra', in_channels=dict(rgb=6, flow=4), embed_dims=16,
    num_heads=2, ffn_dims=16, long_memory_length=12, work_memory_length=5,
    encoder=[dict(num_queries=3, num_layers=1),
             dict(num_queries=4, num_layers=2)], drop_rate=0.)
ONLINE = dict(
    testra=dict(TESTRA, decay=0.7, num_anticipation_tokens=2),
    testra_fusion_long=dict(TESTRA, fusion='long', num_layers=1),
    lstr=dict(TESTRA, fusion='none', long_memory_pos_embed=True))
LENGTH, LONG_RATE = 70, 3


def random(*shape: int) -> Tensor:
    return draw(*shape, seed=1).half().float()


@torch.no_grad()
def backbone_outputs(model: nn.Module, clips: Tensor) -> dict[str, Tensor]:
    y = model(clips)
    return dict(output=y) if isinstance(y, Tensor) else {
        f'output.{i}': x for i, x in enumerate(y)
    }


@torch.no_grad()
def online_outputs(model: nn.Module, video: Tensor) -> dict[str, Tensor]:
    """Return scores of windows with a full memory, and of streams."""
    backbone = model.backbone
    features = dict(zip(('rgb', 'flow'), video.split([6, 4], dim=1)))
    long, work = backbone.long_memory_length, backbone.work_memory_length
    start = torch.arange(LONG_RATE * long, LENGTH - work + 1)
    ago = LONG_RATE * torch.arange(long, 0, -1)
    long_indices = start[:, None] - ago
    work_indices = start[:, None] + torch.arange(work)
    indices = torch.cat([long_indices, work_indices], dim=1)
    windows = {name: x[indices] for name, x in features.items()}
    outputs = dict(
        windows=model.cls_head(backbone(windows))['action'],
        dense=dense_features(backbone, features, long_indices, work_indices))
    kernels = ['window']
    if backbone.fusion != 'long' and not backbone.long_memory_pos_embed:
        kernels.append('smoothing')
    for kernel in kernels:
        session = StreamSession(model, LONG_RATE, kernel=kernel)
        outputs[kernel] = session.push(features)['action']
    return outputs


def detector_of(backbone: dict) -> dict:
    return dict(
        type='OnlineActionDetector', backbone=backbone,
        cls_head=dict(type='OnlineActionHead', num_classes=5,
                      in_channels=backbone['embed_dims'], score='logit'))


def compute(name: str, model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    # ResT's norm of attention weights amplifies the rounding of float32.
    if name == 'laps_rest':
        model, x = model.double(), x.double()
    outputs = online_outputs if name in ONLINE else backbone_outputs
    return {key: y.float() for key, y in outputs(model, x).items()}


def make(name: str) -> None:
    if name in ONLINE:
        config, x = detector_of(ONLINE[name]), random(LENGTH, 10)
    else:
        config = BACKBONES[name]
        frames = config.get('num_frames', 8)
        x = random(1, 3, frames, 32, 32)
    init_default_scope('mmaction')
    model = fill(MODELS.build(config)).half().float()
    outputs = compute(name, model, x)
    model.float()
    assert all(y.isfinite().all() for y in outputs.values()), name
    tensors = {f'state.{k}': v.half() if v.is_floating_point() else v
               for k, v in model.state_dict().items()}
    tensors['input'] = x.half()
    tensors.update({f'result.{k}': v for k, v in outputs.items()})
    save_file({k: v.contiguous() for k, v in tensors.items()},
              FOLDER / f'{name}.safetensors',
              metadata=dict(config=json.dumps(config)))
    print(name, *(f'{key} {tuple(y.shape)} std {y.std():.2g}'
                  for key, y in outputs.items()))


if __name__ == '__main__':
    for name in sys.argv[1:] or [*BACKBONES, *ONLINE]:
        make(name)
