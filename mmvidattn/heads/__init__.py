# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Classification heads."""
from .linear_video_transformer_head import LinearVideoTransformerHead

__all__ = ['LinearVideoTransformerHead']
