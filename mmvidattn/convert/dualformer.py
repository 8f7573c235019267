# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of the released DualFormer, and of its image model.

https://github.com/sail-sg/dualformer
"""
import warnings

import torch
from torch import Tensor

from .rename import rename_all

_RENAMES = (
    (r'^(backbone\.patch_embeds\.\d+)\.proj\.', r'\1.projection.'),
    (r'^(backbone)\.pos_block\.(\d+)\.proj\.0\.', r'\1.pegs.\2.dwconv.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'\.attn\.sr\.', '.attn.pyramid.levels.0.'),
    (r'\.attn\.lr\.0\.', '.attn.pyramid.levels.1.conv1.'),
    (r'\.attn\.lr\.1\.', '.attn.pyramid.levels.1.norm.'),
    (r'\.attn\.lr\.3\.', '.attn.pyramid.levels.1.conv2.'),
    (r'\.attn\.norm\.', '.attn.pyramid.norm.'),
)
_OURS = (
    r'(cls_head\.(fc_cls|token_linear\.[036])|backbone\.(norm|'
    r'patch_embeds\.\d+\.(projection|norm)|pegs\.\d+\.dwconv|'
    r'blocks\.\d+\.\d+\.(attn_norm|mlp_norm|mlp\.fc[12]|attn\.(qkv|q|kv|proj|'
    r'pyramid\.(norm|levels\.(0|1\.(conv1|conv2|norm)))))))'
    r'\.(weight|bias|running_mean|running_var|num_batches_tracked)')

# Frames of a clip per frame of a kernel in the finest pyramid level: 2 per
# patch, times 8.
_FRAMES_OF_KERNEL = 2 * 8
_FINEST = 'backbone.blocks.0.1.attn.pyramid.levels.0.weight'
# The two convolutions of a coarse level.
_FIRST, _SECOND = '.attn.lr.0.', '.attn.lr.3.'


def dualformer(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a checkpoint of the authors' code.

    The teacher in a checkpoint of token labeling is left out.

    Returns:
        Tensors that load strictly into a recognizer with ``DualFormer`` and
        ``I3DHead`` or ``TokenLabelHead``. A backbone for other clip lengths
        resizes the kernels.

    Warns:
        UserWarning: If the kernels are for clips of other than 32 frames,
            the length in our configs.
    """
    out = rename_all(state_dict, _RENAMES, 'the released DualFormer',
                     unused=('teacher.', ), valid=_OURS)
    finest = out.get(_FINEST)
    if finest is not None and finest.dim() == 5:
        frames = _FRAMES_OF_KERNEL * finest.shape[2]
        if frames != 32:
            warnings.warn(
                f'this DualFormer has kernels for clips of {frames} frames. '
                f'Use --cfg-options model.backbone.num_frames={frames} to get '
                'its published scores. Other models, such as the configs '
                'without this option, resize the kernels when they load them, '
                'which changes the scores', stacklevel=3)
    return out


def dualformer_2d(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert the authors' image model to start weights.

    Kernels stay two-dimensional. The backbone repeats them over its frames,
    and divides them by the number of frames. The classifier is left out.

    As in the authors' code, the second convolution of a coarse pyramid level
    becomes a mean, whatever the checkpoint contains. The result has a 1x1
    kernel of ones, which the backbone extends to the size of the level, so
    that it is a mean for any number of frames. (The authors' code always
    divides by the size for 32 frames.)
    """
    named = {}
    for name, value in state_dict.items():
        if name.startswith(('head.', 'cls_head.')) or _SECOND in name:
            continue
        name = f'backbone.{name.removeprefix("backbone.")}'
        named[name] = value
        if name.endswith(f'{_FIRST}bias'):
            second = name.replace(_FIRST, _SECOND)
            named[second] = torch.zeros_like(value)
            named[second.replace('bias', 'weight')] = torch.ones_like(
                value)[:, None, None, None]
    return dualformer(named)
