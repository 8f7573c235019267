# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets; their transforms are in ``transforms``."""
from . import transforms  # noqa: F401
from .annotations.custom.video_list import read_video_list
from .checked_datasets import CheckedVideoDataset, SkipUnreadable
from .feature_stream_dataset import FeatureStreamDataset
from .frame_list_dataset import FrameListDataset
from .frozen_feature_dataset import FrozenFeatureDataset
from .samplers import RandomOffsetSampler, StatefulVideoSampler
from .video_segment_dataset import VideoSegmentDataset
from .video_stream_dataset import VideoStreamDataset

# Earlier names.
GuardedDataset, GuardedVideoDataset = SkipUnreadable, CheckedVideoDataset

__all__ = [
    'CheckedVideoDataset', 'FeatureStreamDataset', 'FrameListDataset',
    'FrozenFeatureDataset', 'RandomOffsetSampler', 'SkipUnreadable',
    'StatefulVideoSampler', 'VideoSegmentDataset', 'VideoStreamDataset',
    'read_video_list']
