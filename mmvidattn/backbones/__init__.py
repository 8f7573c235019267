# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Backbones: one file per network, and their common base in ``base.py``.

Each network is named after its paper. LAPS extends three networks; its shared
part is in ``laps.py``.
"""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    bn_inception=['BNInception'],
    dualformer=['DualFormer'],
    inflated=['InflatedBackbone'],
    linear_video_transformer=['LinearVideoTransformer'],
    rest=['ResT'],
    visformer=['Visformer'],
    vit=['VisionTransformerLAPS'],
    vivit=['ViViT'],
    vjepa2=['VJEPA2', 'VJEPA2Predictor'],
    xvit=['XViT']))
