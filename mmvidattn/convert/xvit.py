# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of the released XViT, or an image ViT to start weights.

https://github.com/OpenNLPLab/Linear_VideoTransformer
"""
from torch import Tensor

from .image_vit import image_vit
from .linear_ff import convert_released
from .rename import missing_tensor, rename
from .start_weights import StartWeights

_RENAMES = (
    (r'\.norm1\.', '.attn_norm.'),
    (r'^consensus\.cls_token$', 'cls_head.cls_token'),
    (r'^consensus\.temporal_encoder\.0\.', 'cls_head.block.'),
)
_IMAGE_RENAMES = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    (r'^norm_pre\.', 'pre_norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
)
_TOKENS = 'base_model.cls_token', 'base_model.pos_embed'


def xvit(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a checkpoint of the authors' code.

    See :func:`~mmvidattn.convert.linear_ff.convert_released`. The first
    position belongs to the class token, and is added to it.

    Returns:
        Tensors that load strictly into a recognizer with ``XViT`` and
        ``XViTHead``.
    """
    return convert_released(
        state_dict, _RENAMES, 'the released XViT', unused=_TOKENS
    ) | _tokens(state_dict)


def xvit_image(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert a ViT of :func:`image_vit` to start weights of ``XViT``.

    The paper starts from a ViT-B/16 of ImageNet-21k. The ViT must have a
    class token. Load the result with ``init_cfg=dict(type='Pretrained',
    ...)``. Temporal embeddings and head keep their initialization.
    """
    image = image_vit(state_dict)
    for name in 'cls_token', 'pos_embed':
        if name not in image:
            raise missing_tensor('a ViT with class token and positions', name,
                                 state_dict)
    out = {
        f'backbone.{rename(name, _IMAGE_RENAMES)}': value
        for name, value in image.items()
    }
    out['backbone.cls_token'] = image['cls_token'][:, None, None]
    out['backbone.pos_embed'] = image['pos_embed'][:, None]
    return StartWeights(out, image.account, image.notes)


def _tokens(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the class token plus its position, and the grid of positions."""
    for name in _TOKENS:
        if name not in state_dict:
            raise missing_tensor('the released XViT', name, state_dict)
    cls_token, positions = (state_dict[name] for name in _TOKENS)
    side = int((positions.shape[1] - 1)**0.5)
    if positions.shape[1] != side**2 + 1:
        raise ValueError('pos_embed must have a square number of positions '
                         'and one for the class token, got '
                         f'{positions.shape[1]}')
    cls_position, grid = positions.split((1, side**2), dim=1)
    return {
        'backbone.cls_token': (cls_token + cls_position)[:, None, None],
        'backbone.pos_embed': grid.unflatten(1, (1, side, side)),
    }
