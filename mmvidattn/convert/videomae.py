# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of VideoMAE and VideoMAE V2, to start ViViT's Model 1 from.

Names as in ``modeling_finetune.py`` and ``modeling_pretrain.py`` of the
authors' code, and in transformers:

https://github.com/MCG-NJU/VideoMAE
https://github.com/OpenGVLab/VideoMAEv2

On the Hub, ``OpenGVLab/VideoMAEv2-Base`` has these names with 'model.' before
them, and by its config a norm behind the mean, no classifier, and neither
LayerScale nor cosine attention.
"""
import re

import torch
from torch import Tensor

from .hf_names import RENAMES, is_hf
from .image_vit import named_by, sort_tensors
from .rename import rename
from .start_weights import StartWeights

# transformers' names of it.
_HF = (
    (r'\.attention\.([qv])_bias$', r'.\1_bias'),
    *RENAMES,
)
# The authors'; those of pre-training stand below ``encoder``.
_AUTHORS = (
    (r'^(?:model|encoder)\.', ''),
    (r'\.gamma_([12])$', r'.ls\1.gamma'),
)
_BOTH = (
    (r'^(blocks\.\d+)(?:\.attention|\.attn)?\.q_bias$', r'\1.attn.query.bias'),
    (r'^(blocks\.\d+)(?:\.attention|\.attn)?\.v_bias$', r'\1.attn.value.bias'),
)
# Of pre-training alone.
_DROPPED = re.compile(r'(decoder|encoder_to_decoder)\..+|mask_token')
_OURS = (
    (r'^patch_embed\.proj\.', 'backbone.patch_embed.projection.'),
    (r'^(?:fc_norm|norm)\.', 'backbone.encoder.norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^blocks\.', 'backbone.encoder.blocks.'),
)
# What all of them are trained on.
_FRAMES, _SIDE = 16, 224


def vivit_videomae(state_dict: dict[str, Tensor]) -> StartWeights:
    """From VideoMAE to a recognizer of ``ViViT``, Model 1, and ``ViViTHead``.

    It takes the authors' names, of pre-training or fine-tuning, and those of
    transformers. VideoMAE is Model 1 without a class token: build the
    backbone with ``pool='mean_norm'`` for a fine-tuned network, 'mean' for
    one of pre-training alone, with ``gelu_approximate='none'``. It is then
    the same network.

    The positions, a fixed table of sines that no file has, are those of 16
    frames of 224 x 224; the backbone resizes them. Keys have no bias; theirs
    is zero. The decoder is left out.

    Args:
        state_dict: Tensors by name.

    Raises:
        ValueError: If it is no such model, or a tensor has no place.
    """
    rules = _HF if is_hf(state_dict) else _AUTHORS
    decoder = [name for name in state_dict if _DROPPED.fullmatch(name)]
    named = named_by([name for name in state_dict if name not in decoder],
                     (*rules, *_BOTH))
    patches = named.get('patch_embed.proj.weight')
    if patches is None or state_dict[patches].dim() != 5:
        raise ValueError(
            'no VideoMAE: there is no patch_embed.proj.weight of tubelets, or '
            f'its like, among {", ".join(list(state_dict)[:3])}, ...')
    kernel = state_dict[patches]
    head = {new: old for new, old in named.items()
            if new.startswith(('head.', 'fc_norm.'))}
    rest = {new: old for new, old in named.items() if new not in head}
    rest.update(zip(decoder, decoder))
    tensors, account = sort_tensors(state_dict, rest, _DROPPED, 'a VideoMAE')
    fine_tuned = 'fc_norm.weight' in head
    if fine_tuned and 'norm.weight' in tensors:
        raise ValueError('there are both norm.weight and fc_norm.weight: no '
                         'VideoMAE has a norm before the mean and another '
                         'behind it')
    tensors.update({new: state_dict[old] for new, old in head.items()})
    account['used'] += head.values()
    notes = ["as in the source: model='joint', pool="
             + ("'mean_norm'" if fine_tuned else "'mean'")
             + ", gelu_approximate='none', norm_eps=1e-6 (1e-12 in the blocks "
             'of transformers)']
    if 'pos_embed' not in tensors:
        grid = [size // patch for size, patch in zip(
            (_FRAMES, _SIDE, _SIDE), kernel.shape[2:])]
        tensors['pos_embed'] = sine_positions(grid, len(kernel)).to(kernel)
        account['computed'] = ['pos_embed']
    out = {}
    for name, value in tensors.items():
        new = rename(name, _OURS)
        new = re.sub(r'^head\.', 'cls_head.fc_cls.', new)
        out['backbone.encoder.pos_embed' if name == 'pos_embed' else
            new] = value
    return StartWeights(out, account, notes)


def sine_positions(grid: list[int], channels: int) -> Tensor:
    """Sines and cosines of the place of a tubelet in the row of all.

    Even channels c are ``sin(n / 10000^(c / C))``, the odd ones behind them
    its cosine.

    Args:
        grid: Tubelets along time, rows and columns, (T, H, W).
        channels: C.

    Returns:
        [1, T, H, W, C], float64.
    """
    T, H, W = grid
    c = torch.arange(channels)
    places = torch.arange(T * H * W, dtype=torch.float64)
    angles = places[:, None] / 10000**((c - c % 2).double() / channels)
    table = torch.where(c % 2 == 0, angles.sin(), angles.cos())
    return table.view(1, T, H, W, channels)

