# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Modules made of ops. Those that configs select are registered in MODELS."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    base_attention=['BaseAttention'],
    factorized_dot_attention=['FactorizedDotAttention'],
    feature_fixation=['FeatureFixation'],
    gated_delta_attention=['GatedDeltaAttention'],
    global_pyramid_attention=['GlobalPyramid', 'GlobalPyramidAttention'],
    kernel_attentions=[
        'CosFormerAttention', 'MALAAttention', 'PerformerAttention',
        'PolaFormerAttention', 'RALAAttention'],
    linear_attention=['LinearAttention'],
    local_window_attention=['LocalWindowAttention'],
    lora=['add_lora', 'merge_lora'],
    mlp=['MLP'],
    neighbor_shift=['NeighborShift'],
    patch_conv=['PatchConv3d', 'PatchEmbed3d'],
    patch_embed=['PatchEmbed'],
    softmax_approximations=[
        'LARAAttention', 'LinformerAttention', 'OrthoformerAttention'],
    softmax_attention=['RotaryAttention', 'SoftmaxAttention'],
    tubelet_embed=['TubeletEmbed'],
    video_self_attention=['FrameDecay', 'VideoSelfAttention'],
    video_transformer_block=['StochasticDepth', 'VideoTransformerBlock']))
