# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of LAPS and TokShift, released, or of images to start from.

https://github.com/VideoNetworks/LAPS-transformer
"""
import re
import warnings

from torch import Tensor

from .rename import rename

# Of 1x1 convolutions and of linear layers alike.
_ATTENTION = re.compile(r'\.attn\.(qkv|proj)\.weight$')
_RENAMES = {
    'visformer': (
        # The released norms stand in a module of their own.
        (r'\.bn\.', '.'), ),
    'rest': (
        # Not those of the stem, which are of convolutions.
        (r'^(stage\d\.\d+)\.norm1\.', r'\1.attn_norm.'),
        (r'^(stage\d\.\d+)\.norm2\.', r'\1.mlp_norm.'),
    ),
    'vit': (
        (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
        (r'\.norm1\.', '.attn_norm.'),
        (r'\.norm2\.', '.mlp_norm.'),
    ),
}
# A tensor that only that network has, and the names of all it has.
_MARKS = dict(
    visformer='patch_embed1.proj.weight',
    rest='patch_embed_2.conv.weight',
    vit='cls_token')
_NAMES = dict(
    visformer=r'(stem|patch_embed[123]|pos_embed[123]|stage[123]|norm)(\.|$)',
    rest=r'(stem|patch_embed_[234]|stage[1234]|norm)\.',
    vit=r'(cls_token|pos_embed|patch_embed|blocks|norm)(\.|$)')
# Columns of the first position table at 320 x 320, the size of the released B
# and L, which shift 1/8 of the channels, and of H, which shifts 1/4.
_COLUMNS_320 = 40
# Of a classifier, or of the pre-training alone.
_UNUSED = 'pre_logits.', 'head_dist.', 'fc_norm.'


def laps(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the authors' names to those of our recognizer.

    Of all their networks: LAPS, its baselines and ablations on Visformer,
    ResT and ViT, and TokShift.

    Args:
        state_dict: Tensors of a released or newly trained checkpoint.

    Returns:
        Tensors that load strictly into a recognizer of ``Visformer``,
        ``ResT`` or ``VisionTransformerLAPS`` with ``LAPSHead``.

    Warns:
        UserWarning: If the file may be of models that differ in their shift.

    Raises:
        ValueError: If a tensor is not one of such a model.
    """
    strangers = [name for name in state_dict
                 if not re.match(r'(module\.)?base_model\.', name)]
    if strangers or not state_dict:
        raise ValueError(
            f'{strangers[0] if strangers else "nothing"} is no tensor of a '
            'released LAPS or TokShift')
    tensors = {
        re.sub(r'^(module\.)?base_model\.', '', name): value
        for name, value in state_dict.items()
    }
    kind = next(
        (kind for kind, mark in _MARKS.items() if mark in tensors), None)
    if kind is None:
        raise ValueError('no LAPS or TokShift: there is none of '
                         f'base_model.{", base_model.".join(_MARKS.values())}')
    table = tensors.get('pos_embed1')
    if kind == 'visformer' and table is not None and (
            table.shape[-1] == _COLUMNS_320):
        warnings.warn(
            'a released Visformer at 320 x 320 shifts 1/8 of the channels if '
            'it is model B or L (8 or 16 frames, yaml files in v1), and 1/4 '
            'if it is H; the file does not tell which. Use '
            'laps_visformer_b_v1_k400 or laps_visformer_l_v1_k400 for the '
            'first two and laps_visformer_h_k400 for H: others load it, and '
            'give other scores', stacklevel=3)
    return _convert(kind, tensors, with_head=True)


def visformer(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a ``Visformer`` of images to our backbone.

    All tensors except the classifier: a start for training,
    ``init_cfg=dict(type='Pretrained', ...)``. It takes timm's visformer_tiny
    and visformer_small, and the Visformer-S of ImageNet-10k of its authors,
    https://github.com/danczs/Visformer, from which LAPS starts
    (``visformer_s_in10k.pth`` in LAPS' code, published nowhere else that we
    know of). The latter has a module ``bn`` in each norm.

    Args:
        state_dict: Tensors of such a model.

    Raises:
        ValueError: If the tensors do not belong to a Visformer.
    """
    return _convert('visformer', state_dict, with_head=False)


def laps_vit_timm(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Likewise from timm's ``VisionTransformer`` to our
    ``VisionTransformerLAPS``.

    Args:
        state_dict: Tensors of a timm ViT with a class token.

    Raises:
        ValueError: If it is no such model.
    """
    return _convert('vit', state_dict, with_head=False)


def rest(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Likewise from the ``ResT`` of images of its authors to ours.

    https://github.com/wofmanaf/ResT

    Args:
        state_dict: Tensors of a ResT, version 1.

    Raises:
        ValueError: If it is no such model.
    """
    return _convert('rest', state_dict, with_head=False)


def _convert(kind: str, tensors: dict[str, Tensor],
             with_head: bool) -> dict[str, Tensor]:
    if _MARKS[kind] not in tensors:
        raise ValueError(f'no {kind}: there is no {_MARKS[kind]} among '
                         f'{", ".join(list(tensors)[:3])}, ...')
    out = {}
    for name, value in tensors.items():
        if name.startswith(_UNUSED):
            continue
        if name.startswith('head.'):
            if with_head:
                out[name.replace('head.', 'cls_head.fc_cls.')] = value
            continue
        if not re.match(_NAMES[kind], name):
            raise ValueError(f'{name} is no tensor of a {kind}')
        if _ATTENTION.search(name):
            value = value.flatten(1)
        out[f'backbone.{rename(name, _RENAMES[kind])}'] = value
    return out
