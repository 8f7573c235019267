# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Recipes: from what a person downloads to a data root that trains.

A module a data set; each tells what it needs (``NEEDS``), adds its options,
and writes the data root.
"""
from types import ModuleType

from . import (
    diving48,
    egtea,
    epic100,
    hmdb51,
    kinetics,
    mit,
    ssv2,
    thumos14,
    tvseries,
    ucf101,
)
from .output import describe_root

RECIPES: dict[str, ModuleType] = dict(
    thumos14=thumos14, tvseries=tvseries, epic100=epic100, egtea=egtea,
    ssv2=ssv2, kinetics=kinetics, ucf101=ucf101, hmdb51=hmdb51,
    diving48=diving48, mit=mit)

__all__ = ['RECIPES', 'describe_root']
