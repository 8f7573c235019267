# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of the released linear video transformer.

https://github.com/OpenNLPLab/Linear_VideoTransformer
"""
from torch import Tensor

from .rename import rename_all

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
    """Convert a checkpoint of the authors' code.

    ``new_fc``, which the released model never uses, is left out. The table of
    8 temporal embeddings is used cyclically. It gets another name, and the
    backbone repeats it over its frames.

    Blocks without temporal attention are treated as joint attention
    (``pattern='joint'``). The released option to share weights between time
    and space gives the same tensors. It is not supported, and no released
    config uses it.

    Returns:
        Tensors that load strictly into a recognizer with
        ``LinearVideoTransformer`` and ``LinearVideoTransformerHead``.
    """
    is_joint = not any('.temporal_attn.' in name for name in state_dict)
    out = rename_all(
        state_dict, (*(_JOINT if is_joint else _FACTORIZED), *_RENAMES),
        'the released linear video transformer', unused=('new_fc.', ))
    table = 'backbone.cyclic_temporal_embed'
    if table in out:
        out[table] = out[table].unsqueeze(2)
    return out
