# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes that turn downloaded files into a data root for training.

A recipe lists the files that it needs (``NEEDS``), adds its options to the
command line, and writes the data root.
"""
from . import egtea, epic100, thumos14, tvseries
from .output import describe_root
from .video_lists import VIDEO_LISTS

RECIPES = dict(thumos14=thumos14, tvseries=tvseries, epic100=epic100,
               egtea=egtea, **VIDEO_LISTS)

__all__ = ['RECIPES', 'describe_root']
