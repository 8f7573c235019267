# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classification heads."""
from .laps_head import LAPSHead
from .linear_video_transformer_head import LinearVideoTransformerHead
from .mat_head import MATHead
from .online_action_head import OnlineActionHead
from .token_label_head import TokenLabelHead
from .vivit_head import VerbNounHead, ViViTHead
from .xvit_head import XViTHead

__all__ = [
    'LAPSHead', 'LinearVideoTransformerHead', 'MATHead', 'OnlineActionHead',
    'TokenLabelHead', 'VerbNounHead', 'ViViTHead', 'XViTHead'
]
