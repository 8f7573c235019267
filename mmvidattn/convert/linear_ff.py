# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of the released linear video transformer.

https://github.com/OpenNLPLab/Linear_VideoTransformer
"""
from torch import Tensor

from .rename import rename_all

# Of joint attention, which has no attention in time beside it.
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
    (r'^base_model\.temp_embed$', 'backbone.cyclic_temporal_embed'),
    (r'^base_model\.patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'\.temporal_norm1\.', '.temporal_attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'_attn\.pgate\.', '_attn.fixation.gate.'),
    (r'_attn\.([qk]_gate)\.', r'_attn.fixation.\1.'),
    (r'\.mlp\.dwconv\.dwconv\.', '.mlp.dwconv.'),
    (r'^base_model\.', 'backbone.'),
    (r'^consensus\.mlp_head\.0\.', 'cls_head.norm.'),
    (r'^consensus\.mlp_head\.1\.', 'cls_head.fc_hidden.'),
    (r'^consensus\.mlp_head\.4\.', 'cls_head.fc_cls.'),
)


def linear_ff(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the authors' names to those of our recognizer.

    ``new_fc``, which their model has but never uses, is left out. Their table
    of 8 temporal embeddings is read cyclically; it goes under a name of its
    own, and the backbone repeats it over as many frames as it has.

    Blocks without attention in time are of joint attention, for
    ``pattern='joint'``. The tensors do not tell them from those of the
    released option to use the same weights in time and in space, which we do
    not have and no released configuration uses.

    Args:
        state_dict: Tensors of a released or newly trained checkpoint.

    Returns:
        Tensors that load strictly into a recognizer of
        ``LinearVideoTransformer`` and ``LinearVideoTransformerHead``.

    Raises:
        ValueError: If a tensor is not one of that model.
    """
    is_joint = not any('.temporal_attn.' in name for name in state_dict)
    out = rename_all(
        state_dict, (*(_JOINT if is_joint else _FACTORIZED), *_RENAMES),
        'the released linear video transformer', unused=('new_fc.', ))
    table = 'backbone.cyclic_temporal_embed'
    if table in out:
        out[table] = out[table].unsqueeze(2)
    return out
