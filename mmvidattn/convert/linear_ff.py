# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of the released linear video transformer and of XViT.

https://github.com/OpenNLPLab/Linear_VideoTransformer
"""
from collections.abc import Sequence

from torch import Tensor

from .image_vit import add_first_position
from .rename import missing_tensor, rename_all

# Joint attention, without a separate temporal attention.
_JOINT = (
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.attn\.pgate\.', '.attn.fixation.gate.'),
    (r'\.attn\.([qk]_gate)\.', r'.attn.fixation.\1.'),
)
_FACTORIZED = (
    (r'\.norm1\.', '.spatial_attn_norm.'),
    (r'\.attn\.', '.spatial_attn.'),
)
_RENAMES = (
    (r'\.temporal_norm1\.', '.temporal_attn_norm.'),
    (r'_attn\.pgate\.', '_attn.fixation.gate.'),
    (r'_attn\.([qk]_gate)\.', r'_attn.fixation.\1.'),
    (r'\.mlp\.dwconv\.dwconv\.', '.mlp.dwconv.'),
)
_XVIT = (
    (r'\.norm1\.', '.attn_norm.'),
    (r'^consensus\.cls_token$', 'cls_head.cls_token'),
    (r'^consensus\.temporal_encoder\.0\.', 'cls_head.block.'),
)
_XVIT_TOKENS = 'base_model.cls_token', 'base_model.pos_embed'
# The same in all models of the authors.
_COMMON = (
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^base_model\.temp_embed$', 'backbone.cyclic_temporal_embed'),
    (r'^base_model\.patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^base_model\.', 'backbone.'),
    (r'^consensus\.mlp_head\.0\.', 'cls_head.norm.'),
    (r'^consensus\.mlp_head\.1\.', 'cls_head.fc_hidden.'),
    (r'^consensus\.mlp_head\.4\.', 'cls_head.fc_cls.'),
)


def linear_ff(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a checkpoint of the authors' code.

    A model without temporal attention is converted for ``pattern='joint'``. A
    model that shares its weights between time and space has the same tensors,
    and is not supported; no released config is such a model.

    Returns:
        Tensors that load strictly into a recognizer with
        ``LinearVideoTransformer`` and ``LinearVideoTransformerHead``.
    """
    is_joint = not any('.temporal_attn.' in name for name in state_dict)
    return _convert_released(
        state_dict, (*(_JOINT if is_joint else _FACTORIZED), *_RENAMES),
        'the released linear video transformer')


def xvit(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a checkpoint of the authors' code.

    The first position belongs to the class token, and is added to it.

    Returns:
        Tensors that load strictly into a recognizer with ``XViT`` and
        ``XViTHead``.
    """
    out = _convert_released(state_dict, _XVIT, 'the released XViT',
                            unused=_XVIT_TOKENS)
    for name in _XVIT_TOKENS:
        if name not in state_dict:
            raise missing_tensor('the released XViT', name, state_dict)
    tokens = add_first_position({
        name.removeprefix('base_model.'): state_dict[name]
        for name in _XVIT_TOKENS})
    return out | {
        'backbone.cls_token': tokens['cls_token'][:, None, None],
        'backbone.pos_embed': tokens['pos_embed'][:, None]}


def _convert_released(state_dict: dict[str, Tensor],
                     rules: Sequence[tuple[str, str]], model: str,
                     unused: tuple[str, ...] = ()) -> dict[str, Tensor]:
    """Convert a checkpoint of any model in the authors' repository.

    The unused layer ``new_fc`` is left out. The table of 8 temporal embeddings
    becomes ``cyclic_temporal_embed``, which the backbone repeats over its
    frames.

    Args:
        state_dict: Tensors by published name.
        rules: Rules of :func:`~mmvidattn.convert.rename.rename` for this
            model.
        model: Published model, for the error.
        unused: Prefixes of further names to leave out.
    """
    out = rename_all(state_dict, (*rules, *_COMMON), model,
                     unused=('new_fc.', *unused))
    table = 'backbone.cyclic_temporal_embed'
    if table in out:
        out[table] = out[table].unsqueeze(2)
    return out
