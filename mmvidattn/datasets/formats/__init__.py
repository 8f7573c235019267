# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Readers of published annotation formats: a path in, segments out."""
from .activitynet import read_activitynet
from .data_info import DataInfo, read_data_info
from .epic_kitchens import read_epic_classes, read_epic_kitchens
from .own_csv import read_own_csv
from .rulstm import (
    EGTEA_CLASSES,
    EK100_CLASSES,
    read_rulstm,
    read_rulstm_actions,
)
from .segment_file import read_segment_file
from .thumos14 import read_thumos14
from .tvseries import read_tvseries
from .video_segment import (
    VideoSegment,
    checked,
    describe,
    fit_to_videos,
    refuse,
    steps_of,
    videos_of,
)

__all__ = [
    'DataInfo', 'EGTEA_CLASSES', 'EK100_CLASSES', 'VideoSegment', 'checked',
    'describe', 'fit_to_videos', 'read_activitynet', 'read_data_info',
    'read_epic_classes', 'read_epic_kitchens', 'read_own_csv', 'read_rulstm',
    'read_rulstm_actions', 'read_segment_file', 'read_thumos14',
    'read_tvseries', 'refuse', 'steps_of', 'videos_of'
]
