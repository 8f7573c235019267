# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of a 2D image ViT in timm's names, to start training from."""
from torch import Tensor

from .rename import rename

_RENAMES = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    (r'\.norm1\.', '.spatial_attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'\.attn\.', '.spatial_attn.'),
)
_UNUSED = ('cls_token', 'dist_token', 'head.', 'head_dist.', 'pre_logits.',
           'fc_norm.')


def vit_timm(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From timm's ``VisionTransformer`` to ``LinearVideoTransformer``.

    An image ViT has no temporal attention, no gate and no convolution, so the
    result is a start for training, ``init_cfg=dict(type='Pretrained', ...)``,
    and not a whole model: the spatial attention, its norm, the MLP, the patch
    embedding and the positions. Class token and classifier are left out.

    Args:
        state_dict: Tensors of a timm ViT with one prefix token at most.

    Raises:
        ValueError: If it is no such model, or its positions form no square.
    """
    if 'patch_embed.proj.weight' not in state_dict:
        raise ValueError('no timm ViT: there is no patch_embed.proj.weight '
                         f'among {", ".join(list(state_dict)[:3])}, ...')
    out = {}
    for name, value in state_dict.items():
        if name.startswith(_UNUSED):
            continue
        if name == 'pos_embed':
            side = int(value.shape[1]**0.5)
            num_prefix = value.shape[1] - side**2
            if num_prefix > ('cls_token' in state_dict):
                raise ValueError(f'pos_embed has {value.shape[1]} positions: '
                                 'no square, with or without a class token')
            value = value[:, num_prefix:].unflatten(1, (1, side, side))
        out[f'backbone.{rename(name, _RENAMES)}'] = value
    return out
