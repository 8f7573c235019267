# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of transformers' ViViT, or of an image ViT to start ViViT from."""
from torch import Tensor

from .hf_names import timm_names
from .image_vit import image_vit
from .rename import rename, rename_all
from .start_weights import StartWeights

_RENAMES = (
    (r'^patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^head\.', 'cls_head.fc_cls.'),
    (r'^norm\.', 'backbone.encoder.norm.'),
    (r'^norm_pre\.', 'backbone.encoder.pre_norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^blocks\.', 'backbone.encoder.blocks.'),
)
_TOKENS = 'cls_token', 'pos_embed'


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


def vivit_image(state_dict: dict[str, Tensor]) -> StartWeights:
    """From an image ViT to ``ViViT``.

    See :func:`image_vit` for whose. A start for training all four models,
    ``init_cfg=dict(type='Pretrained', ...)``. The backbone spreads patches
    and positions over time when it loads them. Models 3 and 4 have no class
    token, and leave it.

    Args:
        state_dict: Tensors of an image ViT.

    Raises:
        ValueError: See :func:`image_vit`.
    """
    found = image_vit(state_dict)
    out = {rename(name, _RENAMES): value for name, value in found.items()
           if name not in _TOKENS}
    if 'cls_token' in found:
        out['backbone.encoder.cls_token'] = found['cls_token'][:, None, None]
    if 'pos_embed' in found:
        out['backbone.encoder.pos_embed'] = found['pos_embed'][:, None]
    return StartWeights(out, found.account, found.notes)


def _rename(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From timm's names to ours, with the first position in the token."""
    out = rename_all(state_dict, _RENAMES, 'a ViT', unused=_TOKENS)
    cls_token, positions = (state_dict.get(name) for name in _TOKENS)
    if cls_token is not None and positions is not None:
        cls_token = cls_token + positions[:, :1]
        positions = positions[:, 1:]
    if cls_token is not None:
        out['backbone.encoder.cls_token'] = cls_token[:, None, None]
    if positions is not None:
        out['backbone.encoder.pos_embed'] = positions
    return out
