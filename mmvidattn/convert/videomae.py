# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert VideoMAE and VideoMAE V2 to start weights of ViViT's Model 1.

Supported are the names of ``modeling_finetune.py`` and
``modeling_pretrain.py`` in the authors' code, and of transformers:

https://github.com/MCG-NJU/VideoMAE
https://github.com/OpenGVLab/VideoMAEv2

On the Hub, ``OpenGVLab/VideoMAEv2-Base`` has these names with the prefix
'model.'. According to its config, it has a norm after the mean, no classifier,
no LayerScale and no cosine attention.
"""
import re

import torch
from torch import Tensor

from .hf_names import RENAMES, is_hf
from .image_vit import named_by, sort_tensors
from .rename import missing_tensor, rename
from .start_weights import StartWeights

# Names in the authors' code; in pre-training, they begin with ``encoder``.
_AUTHORS = (
    (r'^(?:model|encoder)\.', ''),
    (r'\.gamma_([12])$', r'.ls\1.gamma'),
)
# Names in the authors' code and in published files of transformers.
_BOTH = (
    (r'\.(?:attention\.)*(?:attn\.)?q_bias$', '.attn.query.bias'),
    (r'\.(?:attention\.)*(?:attn\.)?v_bias$', '.attn.value.bias'),
)
# Only used in pre-training.
_DROPPED = re.compile(r'(decoder|encoder_to_decoder)\..+|mask_token')
_OURS = (
    (r'^patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^(?:fc_norm|norm)\.', 'backbone.encoder.norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^blocks\.', 'backbone.encoder.blocks.'),
    (r'^pos_embed$', 'backbone.encoder.pos_embed'),
    (r'^head\.', 'cls_head.fc_cls.'),
)
# Clip size of all published models.
_FRAMES, _SIDE = 16, 224


def vivit_videomae(state_dict: dict[str, Tensor]) -> StartWeights:
    """Convert a pre-trained or fine-tuned VideoMAE for ViViT's Model 1.

    The result fits a recognizer with ``ViViT`` and ``ViViTHead``. VideoMAE is
    Model 1 without class token. With ``gelu_approximate='none'`` and
    ``pool='mean_norm'`` (fine-tuned) or ``pool='mean'`` (only pre-trained),
    the backbone is the same network.

    Positions are sines, which the files do not store. They are computed for
    16 frames of 224 x 224, and the backbone resizes them. Keys get a bias of
    zeros, because the source omits it. The decoder is left out.
    """
    rules = RENAMES if is_hf(state_dict) else _AUTHORS
    decoder = [name for name in state_dict if _DROPPED.fullmatch(name)]
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
    tensors, account = sort_tensors(state_dict, rest, _DROPPED, 'a VideoMAE')
    fine_tuned = 'fc_norm.weight' in head
    if fine_tuned and 'norm.weight' in tensors:
        raise ValueError('expected norm.weight or fc_norm.weight, got both: a '
                         'VideoMAE has one norm, before or after the mean')
    tensors.update({new: state_dict[old] for new, old in head.items()})
    account['used'] += head.values()
    notes = ["options of the source: model='joint', pool="
             + ("'mean_norm'" if fine_tuned else "'mean'")
             + ", gelu_approximate='none', norm_eps=1e-6 (1e-12 in the blocks "
             'of transformers)']
    if 'pos_embed' not in tensors:
        grid = [size // patch for size, patch in zip(
            (_FRAMES, _SIDE, _SIDE), kernel.shape[2:])]
        tensors['pos_embed'] = sine_positions(grid, len(kernel)).to(kernel)
        account['computed'] = ['pos_embed']
    out = {rename(name, _OURS): value for name, value in tensors.items()}
    return StartWeights(out, account, notes)


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
