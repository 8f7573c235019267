# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One file a paper's family of backbones."""
from .linear_video_transformer import LinearVideoTransformer
from .xvit import XViT

__all__ = ['LinearVideoTransformer', 'XViT']
