# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Live detection: from videos, cameras and network streams to events."""
from ..online.event_detector import EventDetector
from ..sources import Source, open_source
from .features import FeatureExtractor
from .live_models import (
    FeatureStreamModel,
    LiveClipModel,
    LiveVideoModel,
    load_live_model,
)
from .run import OnlineDetector, StreamRun
from .step_reader import Detection

__all__ = [
    'Detection', 'EventDetector', 'FeatureExtractor', 'FeatureStreamModel',
    'LiveClipModel', 'LiveVideoModel', 'OnlineDetector', 'Source', 'StreamRun',
    'load_live_model', 'open_source'
]
