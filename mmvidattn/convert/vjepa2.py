# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of V-JEPA 2 and 2.1: encoders, probes and predictors."""
import re

import torch
from torch import Tensor

from .rename import join_qkv, missing_tensor, remark, rename, rename_all

# Names in the authors' files, with or without the prefix of their wrappers,
# and in transformers.
_RULES = (
    (r'^module\.', ''),
    (r'^(?:backbone|vjepa2)\.', ''),
    (r'^encoder\.', ''),
    (r'^(?:embeddings\.patch_embeddings|patch_embed)\.proj\.',
     'backbone.patch_embed.projection.'),
    (r'^(?:layer|blocks)\.', 'backbone.blocks.'),
    (r'^(?:layernorm|norm)\.', 'backbone.norm.'),
    (r'^level_norms\.', 'backbone.level_norms.'),
    (r'^pooler\.cross_attention_(?:layer|block)\.', 'cls_head.'),
    (r'^pooler\.(?:self_attention_layers|blocks)\.', 'cls_head.blocks.'),
    (r'^pooler\.query_tokens$', 'cls_head.query_tokens'),
    (r'^(?:classifier|linear)\.', 'cls_head.fc_cls.'),
    (r'^(verb|noun|action)_classifier\.', r'cls_head.fc_\1.'),
    (r'^cls_head\.(?:layer_)?norm1\.', 'cls_head.cross_norm.'),
    (r'^cls_head\.(?:layer_)?norm2\.', 'cls_head.mlp_norm.'),
    (r'\.(?:layer_)?norm1\.', '.attn_norm.'),
    (r'\.(?:layer_)?norm2\.', '.mlp_norm.'),
    (r'\.(?:attention|self_attn)\.', '.attn.'),
    (r'\.attn\.out_proj\.', '.attn.proj.'),
    (r'\.attn\.(query|key|value)\.', r'.attn.\1_proj.'),
    (r'\.attn\.q_proj\.', '.attn.query_proj.'),
    (r'\.attn\.k_proj\.', '.attn.key_proj.'),
    (r'\.attn\.v_proj\.', '.attn.value_proj.'),
    (r'\.(?:xattn\.q|cross_attn\.q_proj)\.', '.query.'),
    (r'\.xattn\.kv\.', '.key_value.'),
)
# Names of the predictor.
_PREDICTOR = r'(?:vjepa2\.)?predictor\.(?:module\.)?(?:backbone\.)?'
_PREDICTOR_RULES = (
    (f'^{_PREDICTOR}', 'neck.'),
    (r'^neck\.(?:embeddings\.predictor_embeddings|predictor_embed)\.',
     'neck.embed.'),
    (r'^neck\.(?:layer|predictor_blocks)\.', 'neck.blocks.'),
    (r'^neck\.(?:layernorm|predictor_norm)\.', 'neck.norm.'),
    (r'^neck\.predictor_proj\.', 'neck.proj.'),
    (r'^neck\.(?:mask_tokens\.1|embeddings\.mask_tokens)$', 'neck.mask_token'),
    (r'\.norm1\.', '.attn_norm.'), (r'\.norm2\.', '.mlp_norm.'),
    (r'\.(?:attention|attn)\.(query|key|value)\.', r'.\1_proj.'),
    (r'\.(?:attention|attn)\.', '.'))
# Other mask tokens, and a table that rotary positions replace.
_UNUSED = re.compile(
    _PREDICTOR + r'(mask_tokens\.(?!1$)\d+|predictor_pos_embed)')
_QKV = '.query_proj.', '.key_proj.', '.value_proj.'
_KEY, _VALUE = '.cross_attn.k_proj.', '.cross_attn.v_proj.'
# Of the pre-training, and of images in V-JEPA 2.1.
_DROPPED = re.compile(
    r'(predictor|patch_embed_img|norms_block)\..+|img_mod_embed|'
    r'(mask_token|pos_embed)s?')
_NORM = re.compile(r'(?:module\.)?(?:backbone\.)?norms_block\.(\d+)\.(\w+)')
_BLOCK = re.compile(r'(?:module\.)?(?:backbone\.)?blocks\.(\d+)\.')
# Blocks that a norm follows, by the number of blocks.
_LEVELS = {12: (2, 5, 8, 11), 24: (5, 11, 17, 23), 40: (9, 19, 29, 39),
           48: (11, 23, 37, 47)}
_VIDEO = 'video_mod_embed'
_MODEL = 'V-JEPA 2'


def vjepa2(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert an encoder, a probe, or both, for ``VJEPA2``, ``AttentiveHead``.

    Supported are the authors' files of V-JEPA 2 and 2.1 (encoders, and probes
    with one classifier or with verb, noun and action) and ``VJEPA2Model`` and
    ``VJEPA2ForVideoClassification`` of transformers. V-JEPA 2.1 adds an
    embedding of videos to the patches, which is folded into their bias; its
    norms of blocks before the last one are for ``out_layers``. The queries of
    a probe with verbs and nouns get the order noun, verb, action.

    Raises:
        ValueError: If a tensor does not belong to these models.
    """
    levels = _level_norms(state_dict)
    tensors, dropped, video = {}, [], None
    for source, value in state_dict.items():
        name = rename(levels.get(source, source), _RULES)
        if name == _VIDEO:
            video = value
        elif _DROPPED.fullmatch(name):
            dropped.append(source)
        elif name.startswith(('backbone.', 'cls_head.')):
            tensors[name] = value
        else:
            raise ValueError(f'{source} is not a tensor of {_MODEL}')
    bias = 'backbone.patch_embed.projection.bias'
    if bias not in tensors and 'cls_head.query_tokens' not in tensors:
        raise missing_tensor(
            _MODEL, 'patch embedding or pooler.query_tokens', state_dict)
    if video is not None:
        tensors[bias] = tensors[bias] + video.flatten()
    tensors = join_qkv(tensors, _QKV, '.qkv.')
    for name in [name for name in tensors if _KEY in name]:
        tensors[name.replace(_KEY, '.key_value.')] = torch.cat(
            [tensors.pop(name), tensors.pop(name.replace(_KEY, _VALUE))])
    if 'cls_head.fc_verb.weight' in tensors:
        tokens = tensors['cls_head.query_tokens']
        tensors['cls_head.query_tokens'] = tokens[:, [1, 0, 2]]
    remark('dropped', dropped)
    remark(f"options of the source: version='{'2.1' if levels else '2'}'")
    return tensors


def _level_norms(state_dict: dict[str, Tensor]) -> dict[str, str]:
    """Return our names of the norms of V-JEPA 2.1."""
    found = [match for match in map(_NORM.fullmatch, state_dict) if match]
    blocks = {int(match[1]) for match in map(_BLOCK.match, state_dict)
              if match}
    levels = _LEVELS.get(len(blocks), ())
    last = max((int(match[1]) for match in found), default=0)
    names = {}
    for match in found:
        level, rest = int(match[1]), match[2]
        if level == last:
            names[match[0]] = f'norm.{rest}'
        elif len(levels) == last + 1:
            names[match[0]] = f'level_norms.{levels[level]}.{rest}'
    return names


def vjepa2_predictor(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert the predictor of V-JEPA 2 for ``VJEPA2Predictor``, a neck.

    Supported are the authors' files with encoder and predictor, and
    ``VJEPA2Model`` of transformers. The second mask token is used, as in the
    released code for anticipation.

    Raises:
        ValueError: If there is no predictor, or it is of V-JEPA 2.1.
    """
    used = {name: value for name, value in state_dict.items()
            if re.match(_PREDICTOR, name) and not _UNUSED.fullmatch(name)}
    tensors = rename_all(
        used, _PREDICTOR_RULES, 'the predictor of V-JEPA 2',
        valid=r'neck\.(mask_token|(embed|norm|proj)\.\w+|blocks\..+)')
    if 'neck.mask_token' not in tensors:
        raise missing_tensor(_MODEL, 'predictor', state_dict)
    # transformers has one tensor of all mask tokens.
    tokens = tensors['neck.mask_token'].flatten(0, -2)
    tensors['neck.mask_token'] = tokens[1 % len(tokens)]
    remark('dropped', [name for name in state_dict if name not in used])
    return join_qkv(tensors, _QKV, '.qkv.')
