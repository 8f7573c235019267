# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Tensor names of ViT and similar models in transformers."""
from torch import Tensor

from .rename import join_qkv, missing_tensor, rename

# Rules for names in published files and in transformers 5.
RENAMES = (
    (r'^(?:vit|vivit|dinov2|dinov2_with_registers|videomae)\.', ''),
    (r'^embeddings\.(cls|mask)_token$', r'\1_token'),
    (r'^embeddings\.register_tokens$', 'reg_token'),
    (r'^embeddings\.position_embeddings$', 'pos_embed'),
    (r'^embeddings\.patch_embeddings\.projection\.', 'patch_embed.proj.'),
    (r'^(?:encoder\.layer|layers)\.', 'blocks.'),
    (r'\.attention\.attention\.(query|key|value)\.', r'.attn.\1.'),
    (r'\.attention\.q_proj\.', '.attn.query.'),
    (r'\.attention\.k_proj\.', '.attn.key.'),
    (r'\.attention\.v_proj\.', '.attn.value.'),
    (r'\.attention\.(?:output\.dense|o_proj)\.', '.attn.proj.'),
    (r'\.layernorm_before\.', '.norm1.'),
    (r'\.layernorm_after\.', '.norm2.'),
    (r'\.intermediate\.dense\.', '.mlp.fc1.'),
    (r'\.output\.dense\.', '.mlp.fc2.'),
    (r'\.layer_scale([12])\.lambda1$', r'.ls\1.gamma'),
    (r'^layernorm\.', 'norm.'),
    (r'^pooler\.(?:dense\.)?', 'pre_logits.'),
    (r'^classifier\.', 'head.'),
)
QKV = '.attn.query.', '.attn.key.', '.attn.value.'


def is_hf(state_dict: dict[str, Tensor]) -> bool:
    """Return True for tensor names of a ViT or ViViT in transformers."""
    return any(
        name.endswith('embeddings.patch_embeddings.projection.weight')
        for name in state_dict)


def check_hf(state_dict: dict[str, Tensor]) -> None:
    """Raise a ``ValueError`` if :func:`is_hf` returns False."""
    if not is_hf(state_dict):
        raise missing_tensor(
            'a ViT of transformers',
            'embeddings.patch_embeddings.projection.weight', state_dict)


def timm_names(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Rename the tensors of a ViT or ViViT in transformers to timm's names.

    Raises:
        ValueError: If it is another model or incomplete.
    """
    check_hf(state_dict)
    renamed = {rename(name, RENAMES): value
               for name, value in state_dict.items()}
    return join_qkv(renamed, QKV, '.attn.qkv.')
