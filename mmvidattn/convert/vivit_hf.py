# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of transformers' ViViT, or of an image ViT to start ViViT from."""
from torch import Tensor

from .rename import rename
from .vit_hf import is_hf, timm_names

_RENAMES = (
    (r'^patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^head\.', 'cls_head.fc_cls.'),
    (r'^norm\.', 'backbone.encoder.norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^blocks\.', 'backbone.encoder.blocks.'),
)
_TOKENS = 'cls_token', 'pos_embed'
_IMAGE_HEAD = 'head.', 'head_dist.', 'pre_logits.', 'fc_norm.'


def vivit_hf(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From transformers' ``VivitForVideoClassification`` to our recognizer.

    It takes the names of the published files and those of transformers 5. The
    first position is the class token's alone, and is added to it; the others
    stay in one row, which the backbone folds into its grid.

    Args:
        state_dict: Tensors of a released or newly trained checkpoint.

    Returns:
        Tensors that load strictly into a recognizer of ``ViViT``, Model 1,
        and ``ViViTHead``.

    Raises:
        ValueError: If it is no such model.
    """
    return _rename(timm_names(state_dict))


def vivit_image(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From an image ViT, in timm's or transformers' names, to ``ViViT``.

    A start for training all four models, ``init_cfg=dict(type='Pretrained',
    ...)``: all but the classifier is used. The backbone spreads patches and
    positions over time when it loads them. Models 3 and 4 have no class
    token, and leave it.

    Args:
        state_dict: Tensors of a ViT, with a class token or without.

    Raises:
        ValueError: If it is no such model, or its positions form no square.
    """
    if is_hf(state_dict):
        state_dict = timm_names(state_dict)
    if 'patch_embed.proj.weight' not in state_dict:
        raise ValueError('no ViT of timm or transformers: there is no '
                         'patch_embed.proj.weight among '
                         f'{", ".join(list(state_dict)[:3])}, ...')
    out = _rename({
        name: value
        for name, value in state_dict.items()
        if not name.startswith(_IMAGE_HEAD)
    })
    table = out.get('backbone.encoder.pos_embed')
    if table is not None:
        side = int(table.shape[1]**0.5)
        if side**2 != table.shape[1]:
            raise ValueError(
                f'pos_embed has {table.shape[1]} positions of patches: no '
                'square')
        out['backbone.encoder.pos_embed'] = table.unflatten(1, (1, side, side))
    return out


def _rename(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From timm's names to ours, with the first position in the token."""
    out = {}
    for name, value in state_dict.items():
        if name in _TOKENS:
            continue
        new = rename(name, _RENAMES)
        if not new.startswith(('backbone.', 'cls_head.')):
            raise ValueError(f'{name} is no tensor of a ViT')
        out[new] = value
    cls_token, positions = (state_dict.get(name) for name in _TOKENS)
    if cls_token is not None and positions is not None:
        cls_token = cls_token + positions[:, :1]
        positions = positions[:, 1:]
    if cls_token is not None:
        out['backbone.encoder.cls_token'] = cls_token[:, None, None]
    if positions is not None:
        out['backbone.encoder.pos_embed'] = positions
    return out
