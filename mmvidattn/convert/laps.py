# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of LAPS and TokShift, and of their image backbones.

https://github.com/VideoNetworks/LAPS-transformer
"""
import re
import warnings

from torch import Tensor

from .rename import missing_tensor, rename_all

# Weights of 1x1 convolutions or linear layers.
_ATTENTION = re.compile(r'\.attn\.(qkv|proj)\.weight$')
_RENAMES = {
    # The released norms are in a submodule.
    'visformer': ((r'\.bn\.', '.'), ),
    'rest': (
        # The stem has norms of the same names, which stay.
        (r'(\.stage\d\.\d+)\.norm1\.', r'\1.attn_norm.'),
        (r'(\.stage\d\.\d+)\.norm2\.', r'\1.mlp_norm.'),
    ),
    'vit': (
        (r'\.patch_embed\.proj\.', '.patch_embed.projection.'),
        (r'\.norm1\.', '.attn_norm.'),
        (r'\.norm2\.', '.mlp_norm.'),
    ),
}
# A tensor that only this network has, and the names of all of its tensors.
_MARKS = dict(
    visformer='patch_embed1.proj.weight',
    rest='patch_embed_2.conv.weight',
    vit='cls_token')
_NAMES = dict(
    visformer=r'(stem|patch_embed[123]|pos_embed[123]|stage[123]|norm)(\.|$)',
    rest=r'(stem|patch_embed_[234]|stage[1234]|norm)\.',
    vit=r'(cls_token|pos_embed|patch_embed|blocks|norm)(\.|$)')
# Number of columns of `pos_embed1` in models for 320 x 320 pixels. Such a file
# is ambiguous: the released models B and L shift 1/8 of the channels, and H
# shifts 1/4.
_COLUMNS_320 = 40
# Tensors of a classifier or of the pre-training.
_UNUSED = 'pre_logits.', 'head_dist.', 'fc_norm.'


def laps(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a checkpoint of the authors' code.

    Supported are LAPS, its baselines and ablations on Visformer, ResT and
    ViT, and TokShift.

    Returns:
        Tensors that load strictly into a recognizer with ``LAPSHead`` and
        ``Visformer``, ``ResT`` or ``VisionTransformerLAPS``.

    Warns:
        UserWarning: If the file may belong to models with different shifts.
    """
    unknown = [name for name in state_dict
               if not re.match(r'(module\.)?base_model\.', name)]
    if unknown:
        raise ValueError(
            f'{unknown[0]} is not a tensor of a released LAPS or TokShift')
    tensors = {re.sub(r'^(module\.)?base_model\.', '', name): value
               for name, value in state_dict.items()}
    kind = next(
        (kind for kind, mark in _MARKS.items() if mark in tensors), None)
    if kind is None:
        raise missing_tensor(
            'a LAPS or TokShift', ' or '.join(
                f'base_model.{mark}' for mark in _MARKS.values()), state_dict)
    table = tensors.get('pos_embed1')
    if kind == 'visformer' and table is not None and (
            table.shape[-1] == _COLUMNS_320):
        warnings.warn(
            'a released Visformer at 320 x 320 shifts 1/8 of the channels if '
            'it is model B or L (8 or 16 frames, yaml files in v1), and 1/4 '
            'if it is H, but the file does not contain this option. Use '
            'laps_visformer_b_v1_k400 for B, laps_visformer_l_v1_k400 for L, '
            'and laps_visformer_h_k400 for H: with other configs, the scores '
            'are wrong', stacklevel=3)
    return _convert(kind, tensors, with_head=True)


def laps_image(kind: str, state_dict: dict[str, Tensor]
               ) -> dict[str, Tensor]:
    """Convert an image model without its classifier, as start weights.

    Args:
        kind: Backbone:

            * ``'visformer'``: timm's visformer_tiny and visformer_small, and
              the authors' Visformer-S of ImageNet-10k
              (https://github.com/danczs/Visformer), from which LAPS starts.
              Its file ``visformer_s_in10k.pth`` is only in LAPS' code, as far
              as we know, and has a module ``bn`` in each norm.
            * ``'vit'``: timm's ``VisionTransformer`` with a class token, for
              ``VisionTransformerLAPS``.
            * ``'rest'``: the authors' ResT, version 1
              (https://github.com/wofmanaf/ResT).
        state_dict: Tensors of the model.
    """
    return _convert(kind, state_dict, with_head=False)


def _convert(kind: str, tensors: dict[str, Tensor],
             with_head: bool) -> dict[str, Tensor]:
    if _MARKS[kind] not in tensors:
        raise missing_tensor(f'a {kind}', _MARKS[kind], tensors)
    renamed = rename_all(
        tensors, ((r'^head\.', 'cls_head.fc_cls.'),
                  (rf'^({_NAMES[kind]})', r'backbone.\1'), *_RENAMES[kind]),
        f'a {kind}', unused=_UNUSED if with_head else (*_UNUSED, 'head.'))
    return {name: value.flatten(1) if _ATTENTION.search(name) else value
            for name, value in renamed.items()}
