# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert transformers' ViViT, or an image ViT, to ViViT."""
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
    """Convert ``VivitForVideoClassification`` of transformers.

    Supported are the names of the published files and of transformers 5. The
    first position belongs to the class token, and is added to it. The other
    positions stay in one row, which the backbone reshapes to its grid.

    Returns:
        Tensors that load strictly into a recognizer with ``ViViT``, Model 1,
        and ``ViViTHead``.
    """
    tensors = timm_names(state_dict)
    out = rename_all(tensors, _RENAMES, 'a ViT', unused=_TOKENS)
    cls_token, positions = (tensors.get(name) for name in _TOKENS)
    if cls_token is not None and positions is not None:
        cls_token = cls_token + positions[:, :1]
        positions = positions[:, 1:]
    if cls_token is not None:
        out['backbone.encoder.cls_token'] = cls_token[:, None, None]
    if positions is not None:
        out['backbone.encoder.pos_embed'] = positions
    return out


def vivit_image(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert any ViT of :func:`image_vit` to start weights of ``ViViT``.

    Load them with ``init_cfg=dict(type='Pretrained', ...)`` into any of the
    four models of ViViT. The backbone then extends the patch embedding and the
    positions to several frames. Models 3 and 4 ignore the class token.
    """
    image = image_vit(state_dict)
    out = {rename(name, _RENAMES): value for name, value in image.items()
           if name not in _TOKENS}
    if 'cls_token' in image:
        out['backbone.encoder.cls_token'] = image['cls_token'][:, None, None]
    if 'pos_embed' in image:
        out['backbone.encoder.pos_embed'] = image['pos_embed'][:, None]
    return StartWeights(out, image.account, image.notes)
