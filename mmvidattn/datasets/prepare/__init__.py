# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Preparation of data sets: from downloaded files to a data root.

Each data set has a recipe, a module or object with a list of the needed files
(``NEEDS``), ``add_arguments`` for the command line, and ``prepare``, which
writes the data root.
"""
from . import egtea, epic100, thumos14, tvseries
from .video_lists import VIDEO_LISTS

RECIPES = dict(thumos14=thumos14, tvseries=tvseries, epic100=epic100,
               egtea=egtea, **VIDEO_LISTS)

__all__ = ['RECIPES']
