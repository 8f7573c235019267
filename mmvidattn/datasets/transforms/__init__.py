# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms of a sample, in front of the network."""
from .auto_augment import AutoAugment, RandAugment
from .centered_sample_frames import CenteredSampleFrames
from .charades_sample_frames import CharadesSampleFrames
from .clip_labels import ClipLabels
from .decord_segment_init import DecordSegmentInit
from .feature_window import LoadFeatureWindow, PackFeatureInputs
from .fixed_views import FixedViews
from .flow_ten_crop import FlowTenCrop
from .mix_clip import MixClip, MixClipPlusPlus
from .photometric_jitter import PhotometricJitter
from .scale_jitter import ScaleJitter
from .scenic_color_jitter import ScenicColorJitter
from .scenic_rand_augment import ScenicRandAugment
from .scenic_sample_frames import ScenicSampleFrames
from .segment_sample_frames import SegmentSampleFrames
from .slowfast_sample_frames import SlowFastSampleFrames
from .spread_sample_frames import SpreadSampleFrames
from .uniform_three_crop import UniformThreeCrop
from .video_reader_steps import (
    TorchCodecDecode,
    TorchCodecInit,
    VideoReaderDecode,
    VideoReaderInit,
)

__all__ = [
    'AutoAugment', 'CenteredSampleFrames', 'CharadesSampleFrames',
    'ClipLabels', 'DecordSegmentInit', 'FixedViews', 'FlowTenCrop',
    'LoadFeatureWindow', 'MixClip', 'MixClipPlusPlus', 'PackFeatureInputs',
    'PhotometricJitter', 'RandAugment', 'ScaleJitter', 'ScenicColorJitter',
    'ScenicRandAugment', 'ScenicSampleFrames', 'SegmentSampleFrames',
    'SlowFastSampleFrames', 'SpreadSampleFrames', 'TorchCodecDecode',
    'TorchCodecInit', 'UniformThreeCrop', 'VideoReaderDecode',
    'VideoReaderInit'
]
