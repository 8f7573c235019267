# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Preparation of data sets: from downloaded files to a data root."""
from .kitchens import EGTEA_RECIPE, EPIC100_RECIPE
from .online import THUMOS14_RECIPE, TVSERIES_RECIPE
from .video_lists import VIDEO_LISTS

RECIPES = dict(thumos14=THUMOS14_RECIPE, tvseries=TVSERIES_RECIPE,
               epic100=EPIC100_RECIPE, egtea=EGTEA_RECIPE, **VIDEO_LISTS)

__all__ = ['RECIPES']
