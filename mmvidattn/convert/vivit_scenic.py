# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of the released ViViT, all four models.

https://github.com/google-research/scenic/tree/main/scenic/projects/vivit
"""
from torch import Tensor

from .rename import join_qkv, rename

# Location of the parameters in old and new files.
_ROOTS = 'optimizer/target/', 'params/'
_RENAMES = (
    (r'^embedding/', 'backbone.patch_embed.projection.'),
    (r'^output_projection/', 'cls_head.fc_cls.'),
    (r'^TemporalTransformer/', 'backbone.encoder.temporal.'),
    (r'^(?:Spatial)?Transformer/', 'backbone.encoder.'),
    (r'encoderblock_(\d+)/', r'blocks.\1.'),
    (r'encoder_norm/', 'norm.'),
    (r'LayerNorm_(?:0|space)/', 'attn_norm.'),
    (r'LayerNorm_time/', 'temporal_attn_norm.'),
    (r'LayerNorm_(?:1|mlp)/', 'mlp_norm.'),
    (r'MultiHeadDotProductAttention_(?:0|space)/', 'attn.'),
    (r'MultiHeadDotProductAttention_time/', 'temporal_attn.'),
    (r'MlpBlock(?:_0)?/Dense_0/', 'mlp.fc1.'),
    (r'MlpBlock(?:_0)?/Dense_1/', 'mlp.fc2.'),
    (r'attn\.out/', 'attn.proj.'),
    (r'attn\.(query|key|value)/', r'attn.\1.'),
    (r'(?:scale|kernel)$', 'weight'),
    (r'posembed_input/pos_embedding$', 'pos_embed'),
)
# Class token that precedes each table of positions.
_CLS_TOKENS = {
    'Transformer/posembed_input/pos_embedding': 'cls',
    'SpatialTransformer/posembed_input/pos_embedding':
    'cls_SpatialTransformer',
    'TemporalTransformer/posembed_input/pos_embedding':
    'cls_TemporalTransformer',
}
_QKV = '.query.', '.key.', '.value.'


def vivit_scenic(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert the authors' tree of parameters.

    The first position belongs to the class token, and is added to it. The
    other positions stay in one row, which the backbone reshapes to its grid.

    Args:
        state_dict: Arrays by path, such as 'Transformer/encoder_norm/scale',
            with or without the optimizer's state, as read by
            :func:`~mmvidattn.convert.flax_checkpoint.load_flax_file`.

    Returns:
        Tensors that load strictly into a recognizer with ``ViViT`` and
        ``ViViTHead`` (``VerbNounHead`` for EPIC-Kitchens).
    """
    tree = _parameters(state_dict)
    renamed = {}
    for path, value in tree.items():
        if path in _CLS_TOKENS.values():
            continue
        name = rename(path, _RENAMES)
        if not name.startswith(('backbone.', 'cls_head.')) or '/' in name:
            raise ValueError(f'{path} is not an array of the released ViViT')
        if path in _CLS_TOKENS and _CLS_TOKENS[path] in tree:
            token = tree[_CLS_TOKENS[path]] + value[:, :1]
            renamed[name.replace('pos_embed',
                                 'cls_token')] = token[:, None, None]
            value = value[:, 1:]
        renamed[name] = _transposed(name, value)
    return join_qkv(renamed, _QKV, '.qkv.')


def _parameters(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return only the parameters, by path below the root."""
    for root in _ROOTS:
        parameters = {
            path.removeprefix(root): value
            for path, value in state_dict.items() if path.startswith(root)
        }
        if parameters:
            return parameters
    return state_dict


def _transposed(name: str, value: Tensor) -> Tensor:
    """Convert a flax array to torch's layout."""
    if any(part in name for part in _QKV):
        # Kernel [D, G, d], bias [G, d].
        value = value.flatten(-2)
    elif name.endswith('.proj.weight'):
        # [G, d, D].
        value = value.flatten(0, 1)
    if not name.endswith('weight') or value.dim() == 1:
        return value
    if 'patch_embed' in name:
        # [t, P, P, C, D], or [P, P, C, D] for patches of single frames.
        value = value if value.dim() == 5 else value[None]
        return value.permute(4, 3, 0, 1, 2).contiguous()
    return value.T.contiguous()
