# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of the released ViViT, all four models.

https://github.com/google-research/scenic/tree/main/scenic/projects/vivit
"""
from torch import Tensor

from .rename import join_qkv, rename

# Where a file of theirs keeps the parameters, with the older ones first.
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
# A table of positions: the class token that is the first of its sequence.
_CLS_TOKENS = {
    'Transformer/posembed_input/pos_embedding': 'cls',
    'SpatialTransformer/posembed_input/pos_embedding':
    'cls_SpatialTransformer',
    'TemporalTransformer/posembed_input/pos_embedding':
    'cls_TemporalTransformer',
}
_QKV = '.query.', '.key.', '.value.'


def vivit_scenic(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the authors' tree of parameters to the names of our recognizer.

    A class token takes in its position, the first of the table; the others
    stay in one row, which the backbone folds into its grid.

    Args:
        state_dict: Arrays by their paths, 'Transformer/encoder_norm/scale',
            with the optimizer's state or without, as read by
            :func:`~mmvidattn.convert.flax_checkpoint.load_flax_file`.

    Returns:
        Tensors that load strictly into a recognizer of ``ViViT`` and
        ``ViViTHead`` (``VerbNounHead`` for EPIC-Kitchens).

    Raises:
        ValueError: If an array is not one of that model.
    """
    tree = _parameters(state_dict)
    renamed = {}
    for path, value in tree.items():
        if path in _CLS_TOKENS.values():
            continue
        name = rename(path, _RENAMES)
        if not name.startswith(('backbone.', 'cls_head.')) or '/' in name:
            raise ValueError(f'{path} is no array of the released ViViT')
        if path in _CLS_TOKENS and _CLS_TOKENS[path] in tree:
            token = tree[_CLS_TOKENS[path]] + value[:, :1]
            renamed[name.replace('pos_embed',
                                 'cls_token')] = token[:, None, None]
            value = value[:, 1:]
        renamed[name] = _transposed(name, value)
    return join_qkv(renamed, _QKV, '.qkv.')


def _parameters(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """The parameters alone, by their paths below the root."""
    for root in _ROOTS:
        found = {
            path.removeprefix(root): value
            for path, value in state_dict.items() if path.startswith(root)
        }
        if found:
            return found
    return state_dict


def _transposed(name: str, value: Tensor) -> Tensor:
    """An array of flax in the layout of torch."""
    if any(part in name for part in _QKV):
        # Kernel [D, G, d], bias [G, d].
        value = value.flatten(-2)
    elif name.endswith('.proj.weight'):
        # [G, d, D].
        value = value.flatten(0, 1)
    if not name.endswith('weight') or value.dim() == 1:
        return value
    if 'patch_embed' in name:
        # [t, P, P, C, D], or [P, P, C, D] of patches of single frames.
        value = value if value.dim() == 5 else value[None]
        return value.permute(4, 3, 0, 1, 2).contiguous()
    return value.T.contiguous()
