# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of a 2D image ViT for the linear video transformer."""
from torch import Tensor

from .hf_names import check_hf
from .image_vit import image_vit
from .rename import rename
from .start_weights import StartWeights

_RENAMES = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    # Ours has a norm after the patches, and no class token: without a table
    # of positions it is the same place.
    (r'^norm_pre\.', 'patch_embed.norm.'),
    (r'\.norm1\.', '.spatial_attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'\.attn\.', '.spatial_attn.'),
)


def linear_ff_image(state_dict: dict[str, Tensor]) -> StartWeights:
    """From an image ViT to ``LinearVideoTransformer`` of its width.

    See :func:`image_vit` for whose. An image ViT has no temporal attention,
    no gate and no convolution, so the result is a start for training,
    ``init_cfg=dict(type='Pretrained', ...)``, and not a whole model: the
    spatial attention, its norm, the MLP, the patch embedding and the
    positions. The class token is left out. The norm before the blocks of a
    CLIP becomes that of the patches.

    Args:
        state_dict: Tensors of an image ViT.

    Raises:
        ValueError: See :func:`image_vit`.
    """
    found = image_vit(state_dict, with_cls_token=False)
    out = {
        f'backbone.{rename(name, _RENAMES)}': value
        for name, value in found.items()
    }
    if 'pos_embed' in found:
        # One frame of positions.
        out['backbone.pos_embed'] = found['pos_embed'].unsqueeze(1)
    width, _, *patch = found['patch_embed.proj.weight'].shape
    layers = 1 + max((int(name.split('.')[1]) for name in found
                      if name.startswith('blocks.')), default=-1)
    notes = [f'backbone: embed_dims={width}, num_layers={layers}, '
             f'patch_size={patch[-1]}; a table of positions is used with '
             'with_pos_embed=True only']
    return StartWeights(out, found.account, notes)


def vit_timm(state_dict: dict[str, Tensor]) -> StartWeights:
    """Likewise, if the names are timm's.

    Raises:
        ValueError: If they are not; and see :func:`image_vit`.
    """
    if 'patch_embed.proj.weight' not in state_dict:
        raise ValueError('no timm ViT: there is no patch_embed.proj.weight '
                         f'among {", ".join(list(state_dict)[:3])}, ...')
    return linear_ff_image(state_dict)


def vit_hf(state_dict: dict[str, Tensor]) -> StartWeights:
    """Likewise, if the names are those of a ViT of transformers.

    Raises:
        ValueError: If they are not; and see :func:`image_vit`.
    """
    check_hf(state_dict)
    return linear_ff_image(state_dict)
