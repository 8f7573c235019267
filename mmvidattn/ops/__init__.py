# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ops: functions on tensors, which import neither modules nor OpenMMLab."""
from .cosformer import cosformer_attention
from .feature_fixation import AGGREGATES, fixation_ratio
from .feature_maps import FEATURE_MAPS, feature_map
from .frame_causal_linear_attention import frame_causal_linear_attention
from .frame_causal_softmax_attention import (
    frame_causal_softmax_attention,
)
from .lara import landmark_grid, landmark_pool, lara_attention
from .leap import leap_attention, leap_pair, leap_unpair
from .linear_attention import cheaper_order, linear_attention
from .linformer import linformer_attention
from .orthoformer import orthoformer_attention, orthogonal_landmarks
from .performer import (
    performer_attention,
    performer_features,
    random_projection,
)
from .periodic_shift import periodic_shift, plain_shift, token_shift
from .shift import neighbor_shift, shift_plan
from .softmax_attention import softmax_attention
from .temporal_smoothing import temporal_smoothing_attention
from .top_share_attention import top_share_attention
from .unprojected_attention import unprojected_attention

__all__ = [
    'AGGREGATES', 'FEATURE_MAPS', 'cheaper_order', 'cosformer_attention',
    'feature_map', 'fixation_ratio', 'frame_causal_linear_attention',
    'frame_causal_softmax_attention', 'landmark_grid', 'landmark_pool',
    'lara_attention', 'leap_attention', 'leap_pair', 'leap_unpair',
    'linear_attention', 'linformer_attention', 'neighbor_shift',
    'orthoformer_attention', 'orthogonal_landmarks',
    'performer_attention', 'performer_features',
    'periodic_shift', 'plain_shift', 'random_projection', 'shift_plan',
    'softmax_attention', 'temporal_smoothing_attention', 'token_shift',
    'top_share_attention', 'unprojected_attention'
]
