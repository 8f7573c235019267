# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert the released weights of the networks for streams of features.

https://github.com/zhaoyue-zephyrus/TeSTra
https://github.com/amazon-science/long-short-term-transformer
https://github.com/Echo0125/MAT-Memory-and-Anticipation-Transformer
https://github.com/jbistanbul/MiniROAD
"""
from collections.abc import Sequence

from torch import Tensor

from .rename import rename_all

# Rules for heads and layers of LSTR, TeSTra and MAT.
_COMMON = (
    (r'^classifier\.', 'cls_head.fc_cls.'),
    (r'^classifier_(verb|noun)\.', r'cls_head.fc_\1.'),
    (r'\.multihead_attn\.', '.memory_attn.'),
    (r'_attn\.out_proj\.', '_attn.proj.'),
    (r'\.linear1\.', '.ffn.0.'),
    (r'\.linear2\.', '.ffn.3.'),
    (r'\.norm1\.', '.self_norm.'),
    (r'\.norm3\.', '.ffn_norm.'),
)
_TESTRA = (
    (r'^feature_head_(long|work)\.input_linear\.\d+\.',
     r'backbone.\1_projection.projection.'),
    (r'^enc_queries\.(\d+)\.weight$', r'backbone.encoder.queries.\1'),
    (r'^enc_modules\.(\d+)\.layers\.', r'backbone.encoder.stages.\1.blocks.'),
    (r'^enc_modules\.(\d+)\.norm\.', r'backbone.encoder.stages.\1.norm.'),
    (r'^dec_modules\.layers\.', 'backbone.decoder.transformer.blocks.'),
    (r'^dec_modules\.norm\.', 'backbone.decoder.transformer.norm.'),
    (r'^dec_query\.weight$', 'backbone.anticipation_tokens'),
    *_COMMON,
)
_MAT = (
    (r'^feature_head_(long|work)\.visual_linear\.',
     r'backbone.\1_projection.each.rgb.'),
    (r'^feature_head_(long|work)\.motion_linear\.',
     r'backbone.\1_projection.each.flow.'),
    (r'^feature_head_(long|work)\.input_linear\.',
     r'backbone.\1_projection.joined.'),
    (r'(_projection\..*)\.0\.', r'\1.projection.'),
    (r'(_projection\..*)\.1\.', r'\1.norm.'),
    (r'^enc_queries\.(\d+)\.weight$', r'backbone.encoder.queries.\1'),
    (r'^enc_modules\.', 'backbone.encoder.stages.'),
    (r'^dec_modules\.', 'backbone.decoder.'),
    (r'^gen_layer\.', 'backbone.first_future.'),
    (r'^work_fusions\.', 'backbone.work_rounds.'),
    (r'^fut_fusions\.', 'backbone.future_rounds.'),
    (r'^(backbone\..*\.|backbone\.\w+\.)layers\.', r'\1blocks.'),
    (r'^gen_query\.weight$', 'backbone.future_queries'),
    (r'^final_query\.weight$', 'backbone.future_tokens'),
    *_COMMON,
)
_MINIROAD = (
    (r'^layer1\.0\.', 'backbone.projection.projection.'),
    (r'^layer1\.1\.', 'backbone.projection.norm.'),
    (r'^gru\.', 'backbone.gru.'),
    (r'^f_classification\.0\.', 'cls_head.fc_cls.'),
)


def testra(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``model_state_dict`` of a TeSTra or LSTR checkpoint.

    Returns:
        Tensors that load strictly into an ``OnlineActionDetector`` with
        ``TeSTra`` and ``OnlineActionHead``.
    """
    return _convert_lstr(state_dict, _TESTRA, 'TeSTra or LSTR')


def mat(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``model_state_dict`` of a checkpoint of MAT, for ``MAT``."""
    return _convert_lstr(state_dict, _MAT, 'MAT')


def miniroad(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert a checkpoint, which is a plain state dict, for ``MiniROAD``."""
    return rename_all(state_dict, _MINIROAD, 'the released MiniROAD')


def _convert_lstr(state_dict: dict[str, Tensor],
                  renames: Sequence[tuple[str, str]], model: str
                  ) -> dict[str, Tensor]:
    """Convert a checkpoint of LSTR's code, or of code derived from it.

    The sinusoidal positions are left out, because our models compute them. The
    projection of queries, keys and values is split into two: queries, and keys
    with values.

    Args:
        state_dict: Tensors by name.
        renames: Rules of :func:`~mmvidattn.convert.rename.rename`.
        model: Model, for the error.
    """
    renamed = rename_all(state_dict, renames, f'the released {model}',
                         unused=('pos_encoding.pe', ))
    out = {}
    for name, value in renamed.items():
        layer, is_second_norm, kind = name.partition('.norm2.')
        if is_second_norm:
            # Only a layer with memory has a third norm.
            has_memory = f'{layer}.ffn_norm.{kind}' in renamed
            name = f'{layer}.{"memory" if has_memory else "ffn"}_norm.{kind}'
        attention, is_packed, kind = name.partition('.in_proj_')
        if is_packed:
            q, kv = value.tensor_split([len(value) // 3])
            out[f'{attention}.q.{kind}'] = q
            out[f'{attention}.kv.{kind}'] = kv
        else:
            out[name] = value
    return out
