# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Transforms of samples: frame sampling, decoding and augmentation."""
from ...lazy import lazy_package

lazy_package(__name__, dict(
    auto_augment=['AutoAugment', 'RandAugment'],
    colors=['PhotometricJitter', 'ScenicColorJitter'],
    crops=['FlowTenCrop', 'ScaleJitter', 'UniformThreeCrop'],
    mix_clip=['MixClip', 'MixClipPlusPlus'],
    sample_frames=[
        'AnticipationSampleFrames', 'CenteredSampleFrames',
        'CharadesSampleFrames', 'ClipLabels',
        'ScenicSampleFrames', 'SegmentSampleFrames',
        'SlowFastSampleFrames', 'SpreadSampleFrames'],
    scenic_rand_augment=['ScenicRandAugment'],
    stream_inputs=[
        'LoadFeatureWindow', 'PackFeatureInputs', 'PackStreamInputs',
        'StreamSampleFrames'],
    video_reader_steps=[
        'DecordSegmentInit', 'VideoReaderDecode', 'VideoReaderInit']))
