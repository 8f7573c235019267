# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets and their transforms."""
from .annotations import read_video_list
from .feature_stream_dataset import FeatureStreamDataset
from .guarded_video_dataset import GuardedVideoDataset
from .random_offset_sampler import RandomOffsetSampler
from .transforms import (
    AutoAugment,
    CentredSampleFrames,
    FixedViews,
    LoadFeatureWindow,
    MixClip,
    MixClipPlusPlus,
    PackFeatureInputs,
    RandAugment,
)

__all__ = [
    'AutoAugment', 'CentredSampleFrames', 'FeatureStreamDataset', 'FixedViews',
    'GuardedVideoDataset', 'LoadFeatureWindow', 'MixClip', 'MixClipPlusPlus',
    'PackFeatureInputs', 'RandAugment', 'RandomOffsetSampler',
    'read_video_list'
]
