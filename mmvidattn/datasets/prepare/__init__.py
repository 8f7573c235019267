# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Preparation of data sets: from downloaded files to a data root."""
from .long_videos import LONG_VIDEOS
from .video_lists import VIDEO_LISTS

RECIPES = LONG_VIDEOS | VIDEO_LISTS

__all__ = ['RECIPES']
