# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Modules made of ops; those a config names are registered in MODELS."""
from .base_attention import BaseAttention
from .conv_mlp import ConvMLP
from .feature_fixation import FeatureFixation
from .linear_attention import LinearAttention
from .neighbour_shift import NeighbourShift
from .softmax_attention import SoftmaxAttention
from .video_self_attention import VideoSelfAttention

__all__ = [
    'BaseAttention', 'ConvMLP', 'FeatureFixation', 'LinearAttention', 'NeighbourShift',
    'SoftmaxAttention', 'VideoSelfAttention'
]
