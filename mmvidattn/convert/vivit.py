# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of ViViT and of VideoMAE for ``ViViT``.

- the authors' ViViT, all four models
  (https://github.com/google-research/scenic/tree/main/scenic/projects/vivit);
- ``VivitForVideoClassification`` of transformers;
- VideoMAE and VideoMAE V2 (https://github.com/MCG-NJU/VideoMAE,
  https://github.com/OpenGVLab/VideoMAEv2), with the names of the authors'
  ``modeling_finetune.py`` and ``modeling_pretrain.py``, and of transformers.
  On the Hub, ``OpenGVLab/VideoMAEv2-Base`` has these names with the prefix
  'model.'. According to its config, it has a norm after the mean, no
  classifier, no LayerScale and no cosine attention.
"""
import re

import torch
from torch import Tensor

from .image_vit import HF, QKV, is_hf, sort_tensors
from .rename import (
    join_qkv,
    missing_tensor,
    named_by,
    remark,
    rename,
    rename_all,
)

# Location of the parameters in old and new files.
_ROOTS = 'optimizer/target/', 'params/'
_SCENIC = (
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
# By timm's names.
_OURS = (
    (r'^patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^(?:fc_norm|norm)\.', 'backbone.encoder.norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^blocks\.', 'backbone.encoder.blocks.'),
    (r'^(cls_token|pos_embed)$', r'backbone.encoder.\1'),
    (r'^head\.', 'cls_head.fc_cls.'),
)
# VideoMAE's names in its authors' code. In pre-training, they begin with
# ``encoder``.
_VIDEOMAE = (
    (r'^(?:model|encoder)\.', ''),
    (r'\.gamma_([12])$', r'.ls\1.gamma'),
)
# VideoMAE's names in the authors' code and in published files of transformers.
_BOTH = (
    (r'\.(?:attention\.)*(?:attn\.)?q_bias$', '.attn.query.bias'),
    (r'\.(?:attention\.)*(?:attn\.)?v_bias$', '.attn.value.bias'),
)
# Only used in pre-training.
_DECODER = re.compile(r'(decoder|encoder_to_decoder)\..+|mask_token')
# Clip size of all published models.
_FRAMES, _SIDE = 16, 224


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
        name = rename(path, _SCENIC)
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


def vivit_hf(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``VivitForVideoClassification`` of transformers.

    Supported are the names of the published files and of transformers 5. The
    first position belongs to the class token, and is added to it. The other
    positions stay in one row, which the backbone reshapes to its grid.

    Returns:
        Tensors that load strictly into a recognizer with ``ViViT``, Model 1,
        and ``ViViTHead``.
    """
    if not is_hf(state_dict):
        raise missing_tensor(
            'a ViT of transformers',
            'embeddings.patch_embeddings.projection.weight', state_dict)
    renamed = {rename(name, HF): value for name, value in state_dict.items()}
    out = rename_all(join_qkv(renamed, QKV, '.attn.qkv.'), _OURS, 'a ViT')
    token, table = 'backbone.encoder.cls_token', 'backbone.encoder.pos_embed'
    if token in out and table in out:
        out[token] = (out[token] + out[table][:, :1])[:, None, None]
        out[table] = out[table][:, 1:]
    return out


def vivit_videomae(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a pre-trained or fine-tuned VideoMAE for ViViT's Model 1.

    The result fits a recognizer with ``ViViT`` and ``ViViTHead``. VideoMAE is
    Model 1 without class token. With ``gelu_approximate='none'`` and
    ``pool='mean_norm'`` (fine-tuned) or ``pool='mean'`` (only pre-trained),
    the backbone is the same network.

    Positions are sines, which the files do not store. They are computed for
    16 frames of 224 x 224, and the backbone resizes them. Keys get a bias of
    zeros, because the source omits it. The decoder is left out.
    """
    rules = HF if is_hf(state_dict) else _VIDEOMAE
    decoder = [name for name in state_dict if _DECODER.fullmatch(name)]
    named = named_by([name for name in state_dict if name not in decoder],
                     (*rules, *_BOTH))
    patches = named.get('patch_embed.proj.weight')
    if patches is None or state_dict[patches].dim() != 5:
        raise missing_tensor(
            'a VideoMAE', 'patch_embed.proj.weight of tubelets or equivalent',
            state_dict)
    kernel = state_dict[patches]
    head = {new: old for new, old in named.items()
            if new.startswith(('head.', 'fc_norm.'))}
    rest = {new: old for new, old in named.items() if new not in head}
    rest.update(zip(decoder, decoder))
    tensors = sort_tensors(state_dict, rest, _DECODER, 'a VideoMAE')
    fine_tuned = 'fc_norm.weight' in head
    if fine_tuned and 'norm.weight' in tensors:
        raise ValueError('expected norm.weight or fc_norm.weight, got both: a '
                         'VideoMAE has one norm, before or after the mean')
    tensors.update({new: state_dict[old] for new, old in head.items()})
    remark("options of the source: model='joint', pool="
           + ("'mean_norm'" if fine_tuned else "'mean'")
           + ", gelu_approximate='none', norm_eps=1e-6 (1e-12 in the blocks "
           'of transformers)')
    if 'pos_embed' not in tensors:
        grid = [size // patch for size, patch in zip(
            (_FRAMES, _SIDE, _SIDE), kernel.shape[2:])]
        tensors['pos_embed'] = sine_positions(grid, len(kernel)).to(kernel)
    return {rename(name, _OURS): value for name, value in tensors.items()}


def sine_positions(grid: list[int], channels: int) -> Tensor:
    """Return sines and cosines of the index n of each tubelet.

    An even channel c is ``sin(n / 10000^(c / C))``, and channel c + 1 is the
    cosine of the same angle.

    Args:
        grid: Number of tubelets along time, height and width, (T, H, W).
        channels: Number of channels C.

    Returns:
        [1, T, H, W, C], float64.
    """
    T, H, W = grid
    c = torch.arange(channels)
    places = torch.arange(T * H * W, dtype=torch.float64)
    angles = places[:, None] / 10000**((c - c % 2).double() / channels)
    table = torch.where(c % 2 == 0, angles.sin(), angles.cos())
    return table.view(1, T, H, W, channels)
