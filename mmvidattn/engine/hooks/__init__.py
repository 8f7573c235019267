# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks of the loops."""
from .skipped_videos_hook import SkippedVideosHook

__all__ = ['SkippedVideosHook']
