# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Modules made of ops. Those that configs select are registered in MODELS."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    base_attention=['BaseAttention'],
    cosformer_attention=['CosFormerAttention'],
    factorized_dot_attention=['FactorizedDotAttention'],
    feature_fixation=['FeatureFixation'],
    gated_delta_attention=['GatedDeltaAttention'],
    global_pyramid_attention=['GlobalPyramid', 'GlobalPyramidAttention'],
    lara_attention=['LARAAttention'],
    linear_attention=['LinearAttention'],
    linformer_attention=['LinformerAttention'],
    local_window_attention=['LocalWindowAttention'],
    lora=['add_lora', 'merge_lora'],
    mala_attention=['MALAAttention'],
    mlp=['MLP'],
    neighbor_shift=['NeighborShift'],
    orthoformer_attention=['OrthoformerAttention'],
    patch_conv=['PatchConv3d', 'PatchEmbed3d'],
    patch_embed=['PatchEmbed'],
    performer_attention=['PerformerAttention'],
    polaformer_attention=['PolaFormerAttention'],
    rala_attention=['RALAAttention'],
    rotary_attention=['RotaryAttention'],
    softmax_attention=['SoftmaxAttention'],
    tubelet_embed=['TubeletEmbed'],
    video_self_attention=['FrameDecay', 'VideoSelfAttention'],
    video_transformer_block=['StochasticDepth', 'VideoTransformerBlock']))
