# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Convert the released weights of MAT.

https://github.com/Echo0125/MAT-Memory-and-Anticipation-Transformer
"""
from torch import Tensor

from .testra import LAYERS, convert_lstr

_RENAMES = (
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
    (r'^classifier\.', 'cls_head.fc_cls.'),
    (r'^classifier_(verb|noun)\.', r'cls_head.fc_\1.'),
    *LAYERS,
)


def mat(state_dict: dict[str, Tensor]) -> dict[str, Tensor]:
    """Convert ``model_state_dict`` of a checkpoint, see :func:`convert_lstr`.

    Returns:
        Tensors that load strictly into an ``OnlineActionDetector`` with
        ``MAT`` and ``MATHead``.
    """
    return convert_lstr(state_dict, _RENAMES, 'MAT')
