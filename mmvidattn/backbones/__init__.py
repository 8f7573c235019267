# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backbones: one file per network, and their common base in ``base.py``.

Each network is named after its paper. LAPS extends three networks; its shared
part is in ``laps.py``.
"""
from .bn_inception import BNInception
from .dualformer import DualFormer
from .inflated import InflatedBackbone
from .linear_video_transformer import LinearVideoTransformer
from .rest import ResT
from .visformer import Visformer
from .vit import VisionTransformerLAPS
from .vivit import ViViT
from .xvit import XViT

__all__ = [
    'BNInception', 'DualFormer', 'InflatedBackbone', 'LinearVideoTransformer',
    'ResT', 'ViViT', 'Visformer', 'VisionTransformerLAPS', 'XViT'
]
