# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert image ViTs of several publishers to start weights."""
import math
import re

import torch
from torch import Tensor

from .rename import join_qkv, missing_tensor, named_by, remark, rename

# ViT and similar models of transformers: names in published files and in
# transformers 5.
HF = (
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
# CLIP of transformers, complete or only its vision model.
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
# OpenAI's and OpenCLIP's CLIP, complete or only the vision model. A complete
# one needs the first rules, because its text model has some of the names.
_COMPLETE = (
    (r'^(?=(?:transformer|token_embedding|ln_final|text)\.|positional_embedding|'
     r'text_projection|logit_scale|logit_bias)', 'text_model.'),
    (r'^visual\.', ''),
)
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
# The authors' DINOv2, which otherwise has timm's names.
_DINOV2 = ((r'^register_tokens$', 'reg_token'), )

# Names in each backbone, by timm's names.
_VIVIT = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    (r'^norm\.', 'encoder.norm.'),
    (r'^norm_pre\.', 'encoder.pre_norm.'),
    (r'^(cls_token|pos_embed)$', r'encoder.\1'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'^blocks\.', 'encoder.blocks.'),
)
_XVIT = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    (r'^norm_pre\.', 'pre_norm.'),
    (r'\.norm1\.', '.attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
)
_LINEAR_FF = (
    (r'^patch_embed\.proj\.', 'patch_embed.projection.'),
    # Our backbone has a norm after the patch embedding. This is equivalent
    # without class token and positions.
    (r'^norm_pre\.', 'patch_embed.norm.'),
    (r'\.norm1\.', '.spatial_attn_norm.'),
    (r'\.norm2\.', '.mlp_norm.'),
    (r'\.attn\.', '.spatial_attn.'),
)
# Layers that always have a bias in this package.
_LAYERS = r'patch_embed\.proj|blocks\.\d+\.(attn\.(qkv|proj)|mlp\.fc[12])'
_USED = re.compile(
    rf'cls_token|pos_embed|({_LAYERS}|norm|norm_pre|blocks\.\d+\.norm[12]|'
    r'blocks\.\d+\.attn\.(query|key|value))\.(weight|bias)')
_DROPPED = re.compile(
    r'(head|head_dist|pre_logits|fc_norm|text_model|visual_projection|'
    r'text_projection)\..+|mask_token|dist_token|reg_token|logit_scale|'
    r'embeddings\.position_ids')
_SCALE = re.compile(r'(blocks\.\d+)\.ls([12])\.gamma')
# Layer before each of the two LayerScales.
_SCALED = {'1': 'attn.proj', '2': 'mlp.fc2'}
_MAX_NAMES = 3


def vivit_image(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert any ViT of :func:`image_vit` to start weights of ``ViViT``.

    They load into any of the four models of ViViT. The backbone extends the
    patch embedding and the positions to several frames. Models 3 and 4 ignore
    the class token.
    """
    image = image_vit(state_dict)
    _remark_options(image, state_dict)
    return _for_backbone(image, _VIVIT)


def xvit_image(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a ViT of :func:`image_vit` to start weights of ``XViT``.

    The paper starts from a ViT-B/16 of ImageNet-21k. The ViT must have a
    class token. Temporal embeddings and head keep their initialization.
    """
    image = image_vit(state_dict)
    for name in 'cls_token', 'pos_embed':
        if name not in image:
            raise missing_tensor('a ViT with class token and positions', name,
                                 state_dict)
    _remark_options(image, state_dict)
    return _for_backbone(image, _XVIT)


def linear_ff_image(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert any ViT of :func:`image_vit` to ``LinearVideoTransformer``.

    The backbone must have the same width. The results are start weights for
    spatial attention and its norm, the MLP, the patch embedding and positions.
    Temporal attention, gates and convolutions keep their initialization. The
    class token is left out. CLIP's norm before the blocks becomes the norm of
    the patch embedding.
    """
    image = image_vit(state_dict)
    if image.pop('cls_token', None) is not None:
        remark('the class token is dropped')
    width, _, *patch = image['patch_embed.proj.weight'].shape
    layers = 1 + max((int(name.split('.')[1]) for name in image
                      if name.startswith('blocks.')), default=-1)
    remark(f'backbone: embed_dims={width}, num_layers={layers}, patch_size='
           f'{patch[-1]}; positions are only used with with_pos_embed=True')
    return _for_backbone(image, _LINEAR_FF)


def _remark_options(image: dict[str, Tensor],
                    state_dict: dict[str, Tensor]) -> None:
    """Print the backbone's options that the source needs."""
    if 'norm_pre.weight' in image:
        options = ("pre_norm=True, norm_eps=1e-5, and gelu_approximate="
                   "'sigmoid' (weights of OpenAI) or 'none' (OpenCLIP)")
    else:
        options = "gelu_approximate='none', norm_eps=" + (
            '1e-12 (ViT) or 1e-6 (DINOv2)' if is_hf(state_dict) else '1e-6')
    remark(f'options of the source: {options}')


def _for_backbone(image: dict[str, Tensor],
                  rules: tuple[tuple[str, str], ...]) -> dict[str, Tensor]:
    """Rename the tensors, and add the axis of frames to the tokens."""
    out = {}
    for name, value in image.items():
        if name == 'cls_token':
            value = value[:, None, None]
        elif name == 'pos_embed':
            value = value[:, None]
        out[f'backbone.{rename(name, rules)}'] = value
    return out


def image_vit(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert an image ViT to timm's names, as start weights.

    Supported are timm's ``VisionTransformer``, transformers' ViT, DINOv2
    (with or without registers) and CLIP, the authors' DINOv2, and OpenCLIP.

    * LayerScale is folded into the layer before it:
      ``g * (W x + b) = (g W) x + g b``.
    * The first position is added to the class token.
    * A layer without a bias gets a zero bias.
    * Register tokens are dropped, which changes the features. Classifiers,
      mask tokens, projections to a joint space, and the text model are also
      dropped.

    Args:
        state_dict: Tensors by name.

    Returns:
        Tensors with timm's names, including ``cls_token`` [1, 1, D] and
        ``pos_embed`` [1, h, w, D] if the source has them.

    Raises:
        ValueError: If the model is not supported, a tensor is unknown, or the
            number of positions is not a square.
    """
    named = _timm_names(state_dict)
    if 'patch_embed.proj.weight' not in named:
        raise missing_tensor(
            'a ViT of timm or transformers, a DINOv2 or a CLIP',
            'patch_embed.proj.weight or equivalent', state_dict)
    tensors = sort_tensors(state_dict, named, _DROPPED, 'a ViT')
    tensors.update(add_first_position(tensors))
    if 'norm.weight' not in tensors:
        remark('the source has no last norm, so it is initialized')
    if 'reg_token' in named:
        remark('dropping the register tokens changes the features')
    return tensors


def sort_tensors(state_dict: dict[str, Tensor], named: dict[str, str],
                 dropped: re.Pattern, model: str) -> dict[str, Tensor]:
    """Keep, fold or drop each tensor, and add missing biases.

    Args:
        state_dict: Tensors by name in the source.
        named: Names in the source, by timm's name.
        dropped: Pattern of timm's names to drop.
        model: Model, for the error.

    Returns:
        Tensors with timm's names and a joint projection to Q, K and V.

    Raises:
        ValueError: If a tensor is unknown, or a LayerScale lacks its layer.
    """
    tensors, scales = ({
        name: state_dict[source] for name, source in named.items()
        if kind.fullmatch(name)} for kind in (_USED, _SCALE))
    rest = [name for name in named if name not in tensors | scales]
    if unknown := [named[name] for name in rest
                   if not dropped.fullmatch(name)]:
        shown = unknown[:_MAX_NAMES] + ['...'] * (len(unknown) > _MAX_NAMES)
        raise ValueError(f'{", ".join(shown)} do not belong to {model}')
    tensors, added = _with_biases(tensors)
    for name, scale in scales.items():
        block, which = _SCALE.fullmatch(name).groups()
        layer = f'{block}.{_SCALED[which]}'
        if f'{layer}.weight' not in tensors:
            raise ValueError(f'{named[name]} needs {layer}.weight, which is '
                             'missing')
        tensors[f'{layer}.weight'] = (
            tensors[f'{layer}.weight'] * scale[:, None])
        tensors[f'{layer}.bias'] = tensors[f'{layer}.bias'] * scale
    remark('dropped', (named[name] for name in rest))
    remark('set to zero', added)
    return tensors


def _with_biases(
        tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], list[str]]:
    """Join Q, K and V, add biases of zeros, and return their names."""
    tensors, added = dict(tensors), []
    query, key, value = QKV
    for name in list(tensors):
        if name.endswith(f'{query}bias'):
            other = name.replace(query, key)
            # BEiT and VideoMAE omit the bias of keys, which has no effect.
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


def _timm_names(state_dict: dict[str, Tensor]) -> dict[str, str]:
    """Return the names in the source by timm's names, of any publisher."""

    def has(suffix: str) -> bool:
        return any(f'.{name}'.endswith(f'.{suffix}') for name in state_dict)

    if is_hf(state_dict):
        return named_by(state_dict, HF)
    if has('embeddings.class_embedding'):
        return named_by(state_dict, _CLIP_HF)
    if has('class_embedding') and has('conv1.weight'):
        is_complete = any(name.startswith('visual.') for name in state_dict)
        return named_by(state_dict, _COMPLETE * is_complete + _OPEN_CLIP)
    return named_by(state_dict, _DINOV2)


def add_first_position(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return ``cls_token`` plus its position, and the grid ``pos_embed``."""
    out = {}
    cls_token, table = (tensors.get(n) for n in ('cls_token', 'pos_embed'))
    if cls_token is not None:
        out['cls_token'] = cls_token.reshape(1, 1, -1)
    if table is not None:
        table = table.reshape(1, *table.shape[-2:])
        side = math.isqrt(table.shape[1])
        num_prefix = table.shape[1] - side**2
        if num_prefix > (cls_token is not None):
            raise ValueError('pos_embed must have a square number of '
                             'positions, or one more for the class token, got '
                             f'{table.shape[1]}')
        if num_prefix:
            out['cls_token'] = out['cls_token'] + table[:, :1]
        out['pos_embed'] = table[:, num_prefix:].unflatten(1, (side, side))
    return out


def is_hf(state_dict: dict[str, Tensor]) -> bool:
    """Return True for tensor names of a ViT or ViViT in transformers."""
    return any(
        name.endswith('embeddings.patch_embeddings.projection.weight')
        for name in state_dict)
