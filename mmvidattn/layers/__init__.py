# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Modules made of ops. Those that configs select are registered in MODELS."""
from .base_attention import BaseAttention
from .cosformer_attention import CosFormerAttention
from .factorized_dot_attention import FactorizedDotAttention
from .feature_fixation import FeatureFixation
from .frame_decay import FrameDecay
from .global_pyramid_attention import GlobalPyramid, GlobalPyramidAttention
from .lara_attention import LARAAttention
from .linear_attention import LinearAttention
from .linformer_attention import LinformerAttention
from .local_window_attention import LocalWindowAttention
from .lora import add_lora, merge_lora
from .mlp import MLP
from .neighbor_shift import NeighborShift
from .orthoformer_attention import OrthoformerAttention
from .patch_conv import PatchConv3d, PatchEmbed3d
from .patch_embed import PatchEmbed
from .performer_attention import PerformerAttention
from .softmax_attention import SoftmaxAttention
from .tubelet_embed import TubeletEmbed
from .video_self_attention import VideoSelfAttention
from .video_transformer_block import StochasticDepth, VideoTransformerBlock

__all__ = [
    'BaseAttention', 'CosFormerAttention',
    'FactorizedDotAttention', 'FeatureFixation', 'FrameDecay',
    'GlobalPyramid', 'GlobalPyramidAttention', 'LARAAttention',
    'LinearAttention', 'LinformerAttention', 'LocalWindowAttention', 'MLP',
    'NeighborShift', 'OrthoformerAttention',
    'PatchConv3d', 'PatchEmbed', 'PatchEmbed3d', 'PerformerAttention',
    'SoftmaxAttention', 'StochasticDepth',
    'TubeletEmbed', 'VideoSelfAttention', 'VideoTransformerBlock',
    'add_lora', 'merge_lora'
]
