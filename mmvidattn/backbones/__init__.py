# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One file a paper's family of backbones."""
from .dualformer import DualFormer
from .inflated import InflatedBackbone
from .linear_video_transformer import LinearVideoTransformer
from .rest import ResT
from .visformer import Visformer
from .vit import VisionTransformerLAPS
from .vivit import ViViT
from .xvit import XViT

__all__ = [
    'DualFormer', 'InflatedBackbone', 'LinearVideoTransformer', 'ResT',
    'ViViT', 'Visformer', 'VisionTransformerLAPS', 'XViT'
]
