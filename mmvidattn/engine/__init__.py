# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What takes part in the training and test loops."""
from .hooks import SkippedVideosHook

__all__ = ['SkippedVideosHook']
