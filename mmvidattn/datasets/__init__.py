# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets and their transforms."""
from .annotations.custom.video_list import read_video_list
from .broken_files.guarded_dataset import GuardedDataset
from .broken_files.guarded_video_dataset import GuardedVideoDataset
from .feature_cache_dataset import FeatureCacheDataset
from .feature_stream_dataset import FeatureStreamDataset
from .frame_list_dataset import FrameListDataset
from .random_offset_sampler import RandomOffsetSampler
from .transforms import (
    AutoAugment,
    CenteredSampleFrames,
    CharadesSampleFrames,
    ClipLabels,
    DecordSegmentInit,
    FixedViews,
    LoadFeatureWindow,
    MixClip,
    MixClipPlusPlus,
    PackFeatureInputs,
    RandAugment,
    ScaleJitter,
    ScenicColorJitter,
    ScenicRandAugment,
    ScenicSampleFrames,
    SegmentSampleFrames,
    SlowFastSampleFrames,
    SpreadSampleFrames,
    TorchCodecDecode,
    TorchCodecInit,
    UniformThreeCrop,
    VideoReaderDecode,
    VideoReaderInit,
)
from .video_segment_dataset import VideoSegmentDataset

__all__ = [
    'AutoAugment', 'CenteredSampleFrames', 'CharadesSampleFrames',
    'ClipLabels', 'DecordSegmentInit', 'FeatureCacheDataset',
    'FeatureStreamDataset', 'FixedViews', 'FrameListDataset',
    'GuardedDataset', 'GuardedVideoDataset', 'LoadFeatureWindow',
    'MixClip', 'MixClipPlusPlus', 'PackFeatureInputs', 'RandAugment',
    'RandomOffsetSampler', 'ScaleJitter', 'ScenicColorJitter',
    'ScenicRandAugment', 'ScenicSampleFrames', 'SegmentSampleFrames',
    'SlowFastSampleFrames', 'SpreadSampleFrames', 'TorchCodecDecode',
    'TorchCodecInit', 'UniformThreeCrop', 'VideoReaderDecode',
    'VideoReaderInit', 'VideoSegmentDataset', 'read_video_list'
]
