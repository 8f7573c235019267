# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Functions on tensors: torch only, no modules, no OpenMMLab."""
from .feature_fixation import AGGREGATES, fixation_ratio
from .feature_maps import FEATURE_MAPS, feature_map
from .linear import linear
from .linear_attention import cheaper_order, linear_attention
from .shift import neighbour_shift, shift_plan
from .softmax_attention import softmax_attention

__all__ = [
    'AGGREGATES', 'FEATURE_MAPS', 'cheaper_order', 'feature_map',
    'fixation_ratio', 'linear', 'linear_attention', 'neighbour_shift',
    'shift_plan', 'softmax_attention'
]
