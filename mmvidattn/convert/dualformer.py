# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of the released DualFormer.

https://github.com/sail-sg/dualformer
"""
import re
import warnings

from torch import Tensor

from .rename import rename

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
_OURS = re.compile(
    r'(cls_head\.(fc_cls|token_linear\.[036])|backbone\.(norm|'
    r'patch_embeds\.\d+\.(projection|norm)|pegs\.\d+\.dwconv|'
    r'blocks\.\d+\.\d+\.(attn_norm|mlp_norm|mlp\.fc[12]|attn\.(qkv|q|kv|proj|'
    r'pyramid\.(norm|levels\.(0|1\.(conv1|conv2|norm)))))))'
    r'\.(weight|bias|running_mean|running_var|num_batches_tracked)')

# Frames of a patch, and of the finest level of a pyramid: those of the clips
# that a kernel is made for are its own frames times these.
_FRAMES_OF_KERNEL = 2 * 8
_FINEST = 'backbone.blocks.0.1.attn.pyramid.levels.0.weight'


def dualformer(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the authors' names to those of our recognizer.

    A checkpoint of token labeling holds the teacher as well; it is left out.

    Args:
        state_dict: Tensors of a released or newly trained checkpoint.

    Returns:
        Tensors that load strictly into a recognizer of ``DualFormer`` and
        ``I3DHead``, or ``TokenLabelHead``. The backbone fits the kernels if
        it is made for other clips.

    Warns:
        UserWarning: If the kernels are not those of clips of 32 frames, which
            our configs have.

    Raises:
        ValueError: If a tensor is not one of that model.
    """
    out = {}
    for name, value in state_dict.items():
        if name.startswith('teacher.'):
            continue
        new = rename(name, _RENAMES)
        if not _OURS.fullmatch(new):
            raise ValueError(f'{name} is no tensor of the released DualFormer')
        out[new] = value
    finest = out.get(_FINEST)
    if finest is not None and finest.dim() == 5:
        frames = _FRAMES_OF_KERNEL * finest.shape[2]
        if frames != 32:
            warnings.warn(
                f'this DualFormer has kernels of clips of {frames} frames. It '
                f'gives its own scores with num_frames={frames} (--cfg-options'
                f' model.backbone.num_frames={frames}); a model of other '
                'kernels, such as those of the configs, resizes them when it '
                'loads them, and gives other scores', stacklevel=3)
    return out
