# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""One file a paper's family of backbones."""
from .linear_video_transformer import LinearVideoTransformer

__all__ = ['LinearVideoTransformer']
