# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms of samples: frame sampling, decoding and augmentation."""
from .auto_augment import AutoAugment, RandAugment
from .colors import PhotometricJitter, ScenicColorJitter
from .crops import FlowTenCrop, ScaleJitter, UniformThreeCrop
from .mix_clip import MixClip, MixClipPlusPlus
from .sample_frames import (
    CenteredSampleFrames,
    CharadesSampleFrames,
    ClipLabels,
    ScenicSampleFrames,
    SegmentSampleFrames,
    SlowFastSampleFrames,
    SpreadSampleFrames,
)
from .scenic_rand_augment import ScenicRandAugment
from .stream_inputs import (
    LoadFeatureWindow,
    PackFeatureInputs,
    PackStreamInputs,
    StreamSampleFrames,
)
from .video_reader_steps import (
    DecordSegmentInit,
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
