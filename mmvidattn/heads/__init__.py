# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classification heads."""
from .linear_video_transformer_head import LinearVideoTransformerHead
from .xvit_head import XViTHead

__all__ = ['LinearVideoTransformerHead', 'XViTHead']
