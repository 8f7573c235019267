# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Image ViTs of many publishers under one set of names, timm's."""
import math
import re
from collections.abc import Iterable

import torch
from torch import Tensor

from .hf_names import QKV, RENAMES, is_hf
from .rename import join_qkv, rename
from .start_weights import StartWeights

# transformers' CLIP, all of it or its vision model alone.
_CLIP_HF = (
    (r'^vision_model\.', ''),
    (r'^embeddings\.class_embedding$', 'cls_token'),
    (r'^embeddings\.position_embedding\.weight$', 'pos_embed'),
    (r'^embeddings\.patch_embedding\.', 'patch_embed.proj.'),
    (r'^pre_layrnorm\.', 'norm_pre.'),
    (r'^post_layernorm\.', 'norm.'),
    (r'^encoder\.layers\.', 'blocks.'),
    (r'\.layer_norm([12])\.', r'.norm\1.'),
    (r'\.self_attn\.q_proj\.', '.attn.query.'),
    (r'\.self_attn\.k_proj\.', '.attn.key.'),
    (r'\.self_attn\.v_proj\.', '.attn.value.'),
    (r'\.self_attn\.out_proj\.', '.attn.proj.'),
    (r'^classifier\.', 'head.'),
)
# OpenAI's and OpenCLIP's, likewise. The text model, whose names are partly
# the same without the prefix, gets one of its own first.
_OPEN_CLIP = (
    (r'^class_embedding$', 'cls_token'),
    (r'^positional_embedding$', 'pos_embed'),
    (r'^proj$', 'visual_projection.weight'),
    (r'^conv1\.', 'patch_embed.proj.'),
    (r'^ln_pre\.', 'norm_pre.'),
    (r'^ln_post\.', 'norm.'),
    (r'^transformer\.resblocks\.', 'blocks.'),
    (r'\.ln_([12])\.', r'.norm\1.'),
    (r'\.attn\.in_proj_(weight|bias)$', r'.attn.qkv.\1'),
    (r'\.attn\.out_proj\.', '.attn.proj.'),
    (r'\.mlp\.c_fc\.', '.mlp.fc1.'),
    (r'\.mlp\.c_proj\.', '.mlp.fc2.'),
    (r'\.ls_([12])\.gamma$', r'.ls\1.gamma'),
)
_OPEN_CLIP_TEXT = re.compile(
    r'(transformer|token_embedding|ln_final|text)\.|'
    r'(positional_embedding|text_projection|logit_scale|logit_bias)')
# The authors' DINOv2, which has timm's names but for these.
_DINOV2 = ((r'^register_tokens$', 'reg_token'), )

# Layers that have a bias here, whether they had one there or not.
_LAYERS = r'patch_embed\.proj|blocks\.\d+\.(attn\.(qkv|proj)|mlp\.fc[12])'
_USED = re.compile(
    rf'cls_token|pos_embed|({_LAYERS}|norm|norm_pre|blocks\.\d+\.norm[12]|'
    r'blocks\.\d+\.attn\.(query|key|value))\.(weight|bias)')
_DROPPED = re.compile(
    r'(head|head_dist|pre_logits|fc_norm|text_model|visual_projection|'
    r'text_projection)\..+|mask_token|dist_token|reg_token|logit_scale|'
    r'embeddings\.position_ids')
_SCALE = re.compile(r'(blocks\.\d+)\.ls([12])\.gamma')
# The layer that stands before each of the two LayerScales.
_SCALED = {'1': 'attn.proj', '2': 'mlp.fc2'}
# What makes a network another one, in words.
_MISFITS = (
    (r'\.[qk]_norm\.', 'normalizes queries and keys'),
    (r'\.mlp\.(w12|w3|weights_in|weights_out|gate_proj|up_proj|down_proj|'
     r'fc1_[gx])\b', 'has a SwiGLU'),
    (r'rel_pos|relative_position', 'has relative positions'),
    (r'rope', 'has rotary positions'),
)
_MAX_NAMES = 3


def image_vit(state_dict: dict[str, Tensor],
              with_cls_token: bool = True) -> StartWeights:
    """From the names of a publisher to timm's, ready for our backbones.

    It takes timm's ``VisionTransformer``, ViT, DINOv2 (with registers or
    without) and CLIP of transformers, the authors' DINOv2, and OpenCLIP.

    * LayerScale is folded into the layer before it:
      ``g * (W x + b) = (g W) x + g b``.
    * The first position is added to the class token.
    * A layer without a bias gets one of zeros.
    * Dropped are register tokens, which changes the features, and what comes
      behind the network or beside it: classifiers, mask tokens, projections
      to a joint space, the model of texts.

    Args:
        state_dict: Tensors by name.
        with_cls_token: Whether the class token is used.

    Returns:
        Tensors in timm's names, with ``cls_token`` [1, 1, D] if there is one
        and ``pos_embed`` [1, h, w, D] if there is one.

    Raises:
        ValueError: If it is no such model, a tensor has no place, or the
            positions form no square.
    """
    named, is_hf_vit = _timm_names(state_dict)
    if 'patch_embed.proj.weight' not in named:
        raise ValueError(
            'no ViT of timm or transformers, no DINOv2 and no CLIP: there is '
            'no patch_embed.proj.weight, or its like, among '
            f'{", ".join(list(state_dict)[:_MAX_NAMES])}, ...')
    tensors, account = sort_tensors(state_dict, named, _DROPPED, 'a ViT')
    _check_mlp(tensors)
    tensors.update(_tokens(tensors))
    if not with_cls_token and tensors.pop('cls_token', None) is not None:
        account['used'].remove(named['cls_token'])
        account['dropped'].append(named['cls_token'])
    notes = []
    if 'norm_pre.weight' in tensors:
        notes.append("as in CLIP: pre_norm=True, norm_eps=1e-5, and "
                     "gelu_approximate='sigmoid' (weights of OpenAI) or "
                     "'none' (OpenCLIP)")
    else:
        notes.append("as in the source: gelu_approximate='none', norm_eps="
                     + ('1e-12 of a ViT, 1e-6 of a DINOv2'
                        if is_hf_vit else '1e-6'))
    if 'norm.weight' not in tensors:
        notes.append('the source has no last norm: it starts afresh')
    if 'reg_token' in named:
        notes.append('without its register tokens the network gives other '
                     'features')
    return StartWeights(tensors, account, notes)


def sort_tensors(
    state_dict: dict[str, Tensor], named: dict[str, str],
    dropped: re.Pattern, what: str
) -> tuple[dict[str, Tensor], dict[str, list[str]]]:
    """Keep, fold or drop each tensor, and add the biases that are missing.

    Args:
        state_dict: Tensors in the names of the source.
        named: Timm's name of each, and that of the source.
        dropped: Names of timm to drop.
        what: The model, for the error.

    Returns:
        The tensors in timm's names, with one projection to Q, K and V, and
        the account of :class:`StartWeights`.

    Raises:
        ValueError: If a name is none of these, or a LayerScale has no layer.
    """
    tensors, scales = {}, {}
    account = dict(used=[], folded=[], dropped=[])
    strangers = []
    for name, source in named.items():
        if _SCALE.fullmatch(name):
            scales[name] = state_dict[source]
            account['folded'].append(source)
        elif _USED.fullmatch(name):
            tensors[name] = state_dict[source]
            account['used'].append(source)
        elif dropped.fullmatch(name):
            account['dropped'].append(source)
        else:
            strangers.append(source)
    if strangers:
        why = next((f' that fits: the network {why}'
                    for pattern, why in _MISFITS
                    if re.search(pattern, strangers[0])), '')
        shown = strangers[:_MAX_NAMES] + ['...'] * (
            len(strangers) > _MAX_NAMES)
        raise ValueError(f'{", ".join(shown)} is no tensor of {what}{why}')
    tensors, account['set to zero'] = _with_biases(tensors)
    for name, scale in scales.items():
        block, which = _SCALE.fullmatch(name).groups()
        layer = f'{block}.{_SCALED[which]}'
        if f'{layer}.weight' not in tensors:
            raise ValueError(f'{named[name]} has no {layer}.weight before it')
        tensors[f'{layer}.weight'] = (
            tensors[f'{layer}.weight'] * scale[:, None])
        tensors[f'{layer}.bias'] = tensors[f'{layer}.bias'] * scale
    return tensors, account


def _with_biases(
        tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Join Q, K and V, and add biases of zeros; names these."""
    tensors, added = dict(tensors), []
    query, key, value = QKV
    for name in list(tensors):
        if name.endswith(f'{query}bias'):
            other = name.replace(query, key)
            # As in BEiT and VideoMAE: softmax would not feel it.
            if other not in tensors and name.replace(query, value) in tensors:
                tensors[other] = torch.zeros_like(tensors[name])
                added.append(other)
    tensors = join_qkv(tensors, QKV, '.attn.qkv.')
    for name in list(tensors):
        if re.fullmatch(rf'({_LAYERS})\.weight', name):
            bias = name.removesuffix('weight') + 'bias'
            if bias not in tensors:
                weight = tensors[name]
                tensors[bias] = weight.new_zeros(len(weight))
                added.append(bias)
    return tensors, added


def named_by(names: Iterable[str],
             rules: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Timm's name of each tensor, and that of the source.

    Raises:
        ValueError: If two have the same.
    """
    named = {}
    for name in names:
        new = rename(name, rules)
        if new in named:
            raise ValueError(f'{name} and {named[new]} are the same tensor')
        named[new] = name
    return named


def _timm_names(state_dict: dict[str, Tensor]) -> tuple[dict[str, str], bool]:
    """See :func:`named_by`; and whether it is a ViT of transformers."""

    def has(suffix: str) -> bool:
        return any(f'.{name}'.endswith(f'.{suffix}') for name in state_dict)

    if is_hf(state_dict):
        return named_by(state_dict, RENAMES), True
    if has('embeddings.class_embedding'):
        return named_by(state_dict, _CLIP_HF), False
    if has('class_embedding') and has('conv1.weight'):
        return _open_clip_names(state_dict), False
    return named_by(state_dict, _DINOV2), False


def _open_clip_names(state_dict: dict[str, Tensor]) -> dict[str, str]:
    if not any(name.startswith('visual.') for name in state_dict):
        return named_by(state_dict, _OPEN_CLIP)
    # Without the prefix the names of the model of texts are the same.
    texts = {name for name in state_dict if _OPEN_CLIP_TEXT.match(name)}
    return {
        **named_by([name for name in state_dict if name not in texts],
                   ((r'^visual\.', ''), *_OPEN_CLIP)),
        **{f'text_model.{name}': name for name in texts}
    }


def _check_mlp(tensors: dict[str, Tensor]) -> None:
    """Raise a ``ValueError`` if the MLP has a gate packed with it."""
    for name, value in tensors.items():
        second = tensors.get(name.replace('.fc1.', '.fc2.'))
        if name.endswith('.mlp.fc1.weight') and second is not None and (
                second.shape[1] != len(value)):
            raise ValueError(
                f'{name} is no tensor of a ViT that fits: the network has a '
                f'SwiGLU, {len(value)} channels before {second.shape[1]}')


def _tokens(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The class token with its position, and the positions as a grid."""
    out = {}
    cls_token, table = (tensors.get(n) for n in ('cls_token', 'pos_embed'))
    if cls_token is not None:
        out['cls_token'] = cls_token.reshape(1, 1, -1)
    if table is not None:
        table = table.reshape(1, *table.shape[-2:])
        side = math.isqrt(table.shape[1])
        num_prefix = table.shape[1] - side**2
        if num_prefix > (cls_token is not None):
            raise ValueError(f'pos_embed has {table.shape[1]} positions: no '
                             'square, with or without a class token')
        if num_prefix:
            out['cls_token'] = out['cls_token'] + table[:, :1]
        out['pos_embed'] = table[:, num_prefix:].unflatten(1, (side, side))
    return out
