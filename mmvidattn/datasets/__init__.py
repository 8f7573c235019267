# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets and their transforms."""
from .guarded_video_dataset import GuardedVideoDataset
from .transforms import AutoAugment, RandAugment

__all__ = ['AutoAugment', 'GuardedVideoDataset', 'RandAugment']
