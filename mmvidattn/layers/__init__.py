# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Modules made of ops; those a config names are registered in MODELS."""
from .base_attention import BaseAttention
from .conv_mlp import ConvMLP
from .cosformer_attention import CosFormerAttention
from .feature_fixation import FeatureFixation
from .lara_attention import LARAAttention
from .linear_attention import LinearAttention
from .linformer_attention import LinformerAttention
from .neighbour_shift import NeighbourShift
from .orthoformer_attention import OrthoformerAttention
from .patch_embed import PatchEmbed
from .performer_attention import PerformerAttention
from .softmax_attention import SoftmaxAttention
from .video_self_attention import VideoSelfAttention
from .video_transformer_block import VideoTransformerBlock

__all__ = [
    'BaseAttention', 'ConvMLP', 'CosFormerAttention', 'FeatureFixation',
    'LARAAttention', 'LinearAttention', 'LinformerAttention', 'NeighbourShift',
    'OrthoformerAttention', 'PatchEmbed', 'PerformerAttention',
    'SoftmaxAttention', 'VideoSelfAttention', 'VideoTransformerBlock'
]
