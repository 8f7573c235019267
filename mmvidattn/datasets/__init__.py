# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Datasets; their transforms are in ``transforms``."""
from . import transforms  # noqa: F401
from .annotations.custom.video_list import read_video_list
from .feature_stream_dataset import FeatureStreamDataset
from .frame_list_dataset import FrameListDataset
from .frozen_feature_dataset import FrozenFeatureDataset
from .guarded_datasets import GuardedDataset, GuardedVideoDataset
from .random_offset_sampler import RandomOffsetSampler
from .stateful_video_sampler import StatefulVideoSampler
from .video_segment_dataset import VideoSegmentDataset
from .video_stream_dataset import VideoStreamDataset

__all__ = [
    'FeatureStreamDataset', 'FrameListDataset', 'FrozenFeatureDataset',
    'GuardedDataset', 'GuardedVideoDataset', 'RandomOffsetSampler',
    'StatefulVideoSampler', 'VideoSegmentDataset',
    'VideoStreamDataset', 'read_video_list']
