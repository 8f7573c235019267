# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Weights of TeSTra and of LSTR, as their authors released them.

https://github.com/zhaoyue-zephyrus/TeSTra
https://github.com/amazon-science/long-short-term-transformer
"""
from collections.abc import Sequence

from torch import Tensor

from .rename import rename

# Of each layer.
LAYERS = (
    (r'\.multihead_attn\.', '.memory_attn.'),
    (r'_attn\.out_proj\.', '_attn.proj.'),
    (r'\.linear1\.', '.ffn.0.'),
    (r'\.linear2\.', '.ffn.3.'),
    (r'\.norm1\.', '.self_norm.'),
    (r'\.norm3\.', '.ffn_norm.'),
)
_RENAMES = (
    (r'^feature_head_(long|work)\.input_linear\.\d+\.',
     r'backbone.\1_projection.projection.'),
    (r'^enc_queries\.(\d+)\.weight$', r'backbone.encoder.queries.\1'),
    (r'^enc_modules\.(\d+)\.layers\.', r'backbone.encoder.stages.\1.blocks.'),
    (r'^enc_modules\.(\d+)\.norm\.', r'backbone.encoder.stages.\1.norm.'),
    (r'^dec_modules\.layers\.', 'backbone.decoder.transformer.blocks.'),
    (r'^dec_modules\.norm\.', 'backbone.decoder.transformer.norm.'),
    (r'^dec_query\.weight$', 'backbone.anticipation_tokens'),
    (r'^classifier\.', 'cls_head.fc_cls.'),
    (r'^classifier_(verb|noun)\.', r'cls_head.fc_\1.'),
    *LAYERS,
)
_SINUSOIDS = 'pos_encoding.pe'


def testra(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """From the released names to those of our recognizer.

    Both models have the same names. The table of sinusoidal positions is left
    out, as ours computes them. The packed projection of queries, keys and
    values is split into one of queries and one of the rest.

    Args:
        state_dict: ``model_state_dict`` of a released or newly trained
            checkpoint.

    Returns:
        Tensors that load strictly into an ``OnlineActionDetector`` of
        ``TeSTra`` and ``OnlineActionHead``.

    Raises:
        ValueError: If a tensor is not one of that model.
    """
    return convert_lstr(state_dict, _RENAMES, 'TeSTra or LSTR')


def convert_lstr(state_dict: dict[str, Tensor],
                 renames: Sequence[tuple[str, str]],
                 model: str) -> dict[str, Tensor]:
    """From the names of code that is built upon LSTR's.

    Args:
        state_dict: The tensors.
        renames: Of :func:`~mmvidattn.convert.rename.rename`.
        model: Whose they are, for the message.

    Raises:
        ValueError: If a tensor is not one of that model.
    """
    out = {}
    for name, value in state_dict.items():
        if name == _SINUSOIDS:
            continue
        new = rename(name, renames)
        layer, is_second_norm, kind = new.partition('.norm2.')
        if is_second_norm:
            # A layer without a memory has no third norm.
            third = name.replace('.norm2.', '.norm3.')
            which = 'memory' if third in state_dict else 'ffn'
            new = f'{layer}.{which}_norm.{kind}'
        if not new.startswith(('backbone.', 'cls_head.')):
            raise ValueError(f'{name} is no tensor of the released {model}')
        attention, is_packed, kind = new.partition('.in_proj_')
        if is_packed:
            q, kv = value.tensor_split([len(value) // 3])
            out[f'{attention}.q.{kind}'] = q
            out[f'{attention}.kv.{kind}'] = kv
        else:
            out[new] = value
    return out
