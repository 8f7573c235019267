# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert an image ViT to start weights of the linear video transformer."""
from torch import Tensor

from .hf_names import check_hf
from .image_vit import image_vit
from .rename import missing_tensor, rename
from .start_weights import StartWeights

_RENAMES = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    # Our backbone has a norm after the patch embedding. This is equivalent
    # without class token and positions.
    (r'^norm_pre\.', 'patch_embed.norm.'),
    (r'\.norm1\.', '.spatial_attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'\.attn\.', '.spatial_attn.'),
)


def linear_ff_image(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert any ViT of :func:`image_vit` to ``LinearVideoTransformer``.

    The backbone must have the same width. The results are start weights
    (``init_cfg=dict(type='Pretrained', ...)``) for spatial attention and its
    norm, the MLP, the patch embedding and positions. Temporal attention, gates
    and convolutions keep their initialization. The class token is left out.
    CLIP's norm before the blocks becomes the norm of the patch embedding.
    """
    image = image_vit(state_dict, with_cls_token=False)
    out = {
        f'backbone.{rename(name, _RENAMES)}': value
        for name, value in image.items()
    }
    if 'pos_embed' in image:
        # Positions of one frame.
        out['backbone.pos_embed'] = image['pos_embed'].unsqueeze(1)
    width, _, *patch = image['patch_embed.proj.weight'].shape
    layers = 1 + max((int(name.split('.')[1]) for name in image
                      if name.startswith('blocks.')), default=-1)
    notes = [f'backbone: embed_dims={width}, num_layers={layers}, '
             f'patch_size={patch[-1]}; positions are only used with '
             'with_pos_embed=True']
    return StartWeights(out, image.account, notes)


def vit_timm(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert only timm's ViT with :func:`linear_ff_image`."""
    if 'patch_embed.proj.weight' not in state_dict:
        raise missing_tensor('a timm ViT', 'patch_embed.proj.weight',
                             state_dict)
    return linear_ff_image(state_dict)


def vit_hf(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert only transformers' ViT with :func:`linear_ff_image`."""
    check_hf(state_dict)
    return linear_ff_image(state_dict)
