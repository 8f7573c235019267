# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection: from videos, cameras and network streams to events."""
from ..online.event_detector import EventDetector
from ..sources import Source, open_source
from .clip_model import LiveClipModel
from .detection import Detection
from .detector import OnlineDetector, load_live_model
from .feature_extractor import FeatureExtractor
from .model import LiveModel
from .run import Run
from .video_model import LiveVideoModel

__all__ = [
    'Detection', 'EventDetector', 'FeatureExtractor', 'LiveClipModel',
    'LiveModel', 'LiveVideoModel', 'OnlineDetector', 'Run', 'Source',
    'load_live_model', 'open_source'
]
