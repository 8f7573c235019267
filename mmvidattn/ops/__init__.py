# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Ops: functions on tensors, which import neither modules nor OpenMMLab."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    cosformer=['cosformer_attention'],
    feature_fixation=['AGGREGATES', 'fixation_ratio'],
    frame_causal_linear_attention=['frame_causal_linear_attention'],
    frame_causal_softmax_attention=['frame_causal_softmax_attention'],
    frame_delta_rule=['frame_delta_rule'],
    lara=['landmark_grid', 'landmark_pool', 'lara_attention'],
    leap=['leap_pair', 'leap_unpair'],
    linear_attention=[
        'FEATURE_MAPS', 'cheaper_order', 'feature_map', 'linear_attention'],
    linformer=['linformer_attention'],
    mala=['mala_attention'],
    neighbor_shift=['neighbor_shift', 'shift_plan'],
    orthoformer=['orthoformer_attention', 'orthogonal_landmarks'],
    performer=[
        'performer_attention', 'performer_features',
        'random_projection'],
    periodic_shift=['periodic_shift', 'plain_shift', 'token_shift'],
    polaformer=['polaformer_attention'],
    rala=['rala_attention'],
    rotary_positions=['rotary_positions'],
    softmax_attention=['softmax_attention'],
    temporal_smoothing=['temporal_smoothing_attention'],
    top_share_attention=['top_share_attention'],
    unprojected_attention=['unprojected_attention']))
