# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets; their transforms are in ``transforms``."""
from ..lazy import lazy_package

lazy_package(__name__, {
    'annotations.video_list': ['read_video_list'],
    'checked_datasets': ['CheckedVideoDataset', 'SkipUnreadable'],
    'feature_stream_dataset': [
        'FeatureStreamDataset', 'FrozenFeatureDataset'],
    'frame_list_dataset': ['FrameListDataset'],
    'samplers': ['RandomOffsetSampler', 'StatefulVideoSampler'],
    'transforms': [],
    'video_segment_dataset': ['VideoSegmentDataset'],
    'video_stream_dataset': ['VideoStreamDataset']})
