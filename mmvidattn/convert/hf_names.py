# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Names of transformers' ViT, and of what is built like it."""
from torch import Tensor

from .rename import join_qkv, rename

# Both of the published files, and of transformers 5.
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
    """Tell whether the names are those of a ViT, or ViViT, of transformers."""
    return any(
        name.endswith('embeddings.patch_embeddings.projection.weight')
        for name in state_dict)


def check_hf(state_dict: dict[str, Tensor]) -> None:
    """Raise a ``ValueError`` unless :func:`is_hf`."""
    if not is_hf(state_dict):
        raise ValueError(
            'no ViT of transformers: there is no '
            'embeddings.patch_embeddings.projection.weight among '
            f'{", ".join(list(state_dict)[:3])}, ...')


def timm_names(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From transformers' names of a ViT, or ViViT, to timm's.

    Raises:
        ValueError: If it is no such model, or not all of one.
    """
    check_hf(state_dict)
    renamed = {
        rename(name, RENAMES): value
        for name, value in state_dict.items()
    }
    return join_qkv(renamed, QKV, '.attn.qkv.')
