# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of XViT, released, or of an image ViT to start training from.

https://github.com/OpenNLPLab/Linear_VideoTransformer
"""
from torch import Tensor

from .image_vit import image_vit
from .rename import rename, rename_all
from .start_weights import StartWeights

_RENAMES = (
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^base_model\.patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^base_model\.temp_embed$', 'backbone.cyclic_temporal_embed'),
    (r'^base_model\.', 'backbone.'),
    (r'^consensus\.cls_token$', 'cls_head.cls_token'),
    (r'^consensus\.temporal_encoder\.0\.', 'cls_head.block.'),
    (r'^consensus\.mlp_head\.0\.', 'cls_head.norm.'),
    (r'^consensus\.mlp_head\.1\.', 'cls_head.fc_hidden.'),
    (r'^consensus\.mlp_head\.4\.', 'cls_head.fc_cls.'),
)
_TOKENS = 'base_model.cls_token', 'base_model.pos_embed'
_IMAGE_RENAMES = ((r'\.norm_pre\.', '.pre_norm.'), *_RENAMES)


def xvit(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the released names to those of our recognizer.

    ``new_fc``, which the released model has but never uses, is left out. The
    first position is the class token's alone, and is added to it. The table
    of 8 temporal embeddings is read cyclically; it goes under a name of its
    own, and the backbone repeats it over as many frames as it has.

    Args:
        state_dict: Tensors of a released or newly trained checkpoint.

    Returns:
        Tensors that load strictly into a recognizer of ``XViT`` and
        ``XViTHead``.

    Raises:
        ValueError: If a tensor is not one of that model, or the positions
            form no square.
    """
    out = rename_all(state_dict, _RENAMES, 'the released XViT',
                     unused=('new_fc.', *_TOKENS))
    table = 'backbone.cyclic_temporal_embed'
    if table in out:
        out[table] = out[table].unsqueeze(2)
    return {**out, **_tokens(state_dict)}


def xvit_image(state_dict: dict[str, Tensor]) -> StartWeights:
    """From an image ViT to ``XViT``.

    XViT starts from a ViT-B/16 of ImageNet-21k; see :func:`image_vit` for
    what else it takes. What XViT has beyond it, the temporal embeddings and
    the head, starts afresh: ``init_cfg=dict(type='Pretrained', ...)``.

    Args:
        state_dict: Tensors of an image ViT with a class token.

    Raises:
        ValueError: If there is no class token; and see :func:`image_vit`.
    """
    found = image_vit(state_dict)
    missing = [name for name in ('cls_token', 'pos_embed')
               if name not in found]
    if missing:
        raise ValueError(
            'no ViT with a class token and positions: there is no '
            f'{missing[0]} among {", ".join(list(state_dict)[:3])}, ...')
    out = {
        rename(f'base_model.{name}', _IMAGE_RENAMES): value
        for name, value in found.items()
    }
    out['backbone.cls_token'] = found['cls_token'][:, None, None]
    out['backbone.pos_embed'] = found['pos_embed'][:, None]
    return StartWeights(out, found.account, found.notes)


def _tokens(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """The class token with its position, and the positions as a grid."""
    missing = [name for name in _TOKENS if name not in state_dict]
    if missing:
        raise ValueError(
            'no ViT with a class token: there is no '
            f'{missing[0].removeprefix("base_model.")} among '
            f'{", ".join(list(state_dict)[:3])}, ...')
    cls_token, positions = (state_dict[name] for name in _TOKENS)
    side = int((positions.shape[1] - 1)**0.5)
    if positions.shape[1] != side**2 + 1:
        raise ValueError(f'pos_embed has {positions.shape[1]} positions: no '
                         'square and a class token')
    cls_position, grid = positions.split((1, side**2), dim=1)
    return {
        'backbone.cls_token': (cls_token + cls_position)[:, None, None],
        'backbone.pos_embed': grid.unflatten(1, (1, side, side)),
    }
