# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms of samples: frame sampling, decoding and augmentation."""
from .auto_augment import AutoAugment, RandAugment
from .clip_labels import ClipLabels
from .crops import FlowTenCrop, UniformThreeCrop
from .feature_window import LoadFeatureWindow, PackFeatureInputs
from .mix_clip import MixClip, MixClipPlusPlus
from .photometric_jitter import PhotometricJitter
from .sample_frames import (
    CenteredSampleFrames,
    CharadesSampleFrames,
    ScenicSampleFrames,
    SegmentSampleFrames,
    SlowFastSampleFrames,
    SpreadSampleFrames,
)
from .scale_jitter import ScaleJitter
from .scenic_color_jitter import ScenicColorJitter
from .scenic_rand_augment import ScenicRandAugment
from .segment_frames import DecordSegmentInit
from .stream_frames import PackStreamInputs, StreamSampleFrames
from .video_reader_steps import (
    VideoReaderDecode,
    VideoReaderInit,
)

__all__ = [
    'AutoAugment', 'CenteredSampleFrames', 'CharadesSampleFrames',
    'ClipLabels', 'DecordSegmentInit', 'FlowTenCrop',
    'LoadFeatureWindow', 'MixClip', 'MixClipPlusPlus', 'PackFeatureInputs',
    'PackStreamInputs', 'PhotometricJitter', 'RandAugment', 'ScaleJitter',
    'ScenicColorJitter', 'ScenicRandAugment', 'ScenicSampleFrames',
    'SegmentSampleFrames', 'SlowFastSampleFrames', 'SpreadSampleFrames',
    'StreamSampleFrames', 'UniformThreeCrop', 'VideoReaderDecode',
    'VideoReaderInit']
