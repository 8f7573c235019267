# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert weights of V-JEPA 2 and 2.1, encoders and probes."""
import re

import torch
from torch import Tensor

from .rename import join_qkv, missing_tensor, remark, rename

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
_QKV = '.query_proj.', '.key_proj.', '.value_proj.'
_KEY, _VALUE = '.cross_attn.k_proj.', '.cross_attn.v_proj.'
# Of the pre-training, and of images in V-JEPA 2.1.
_DROPPED = re.compile(
    r'(predictor|patch_embed_img)\..+|img_mod_embed|(mask_token|pos_embed)s?')
_LAST_NORM = re.compile(r'norms_block\.(\d+)\.')
_VIDEO = 'video_mod_embed'
_MODEL = 'V-JEPA 2'


def vjepa2(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert an encoder, a probe, or both, for ``VJEPA2``, ``AttentiveHead``.

    Supported are the authors' files of V-JEPA 2 and 2.1 (encoders, and probes
    with one classifier or with verb, noun and action) and ``VJEPA2Model`` and
    ``VJEPA2ForVideoClassification`` of transformers. V-JEPA 2.1 adds an
    embedding of videos to the patches, which is folded into their bias; of its
    norms after several blocks, the last one is used. The queries of a probe
    with verbs and nouns get the order noun, verb, action.

    Raises:
        ValueError: If a tensor does not belong to these models.
    """
    norms = {int(found[1]) for found in map(_norm_of, state_dict) if found}
    tensors, dropped, video = {}, [], None
    for source, value in state_dict.items():
        name = rename(source, _RULES)
        found = _norm_of(name)
        if found and int(found[1]) == max(norms):
            name = f'backbone.norm.{name[found.end():]}'
        if name == _VIDEO:
            video = value
        elif found and not name.startswith('backbone.') or (
                _DROPPED.fullmatch(name)):
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
    remark(f"options of the source: version='{'2.1' if norms else '2'}'")
    return tensors


def _norm_of(name: str) -> re.Match | None:
    return _LAST_NORM.match(re.sub(r'^(module\.)?(backbone\.)?', '', name))
