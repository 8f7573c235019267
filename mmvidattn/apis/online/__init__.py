# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""From videos, cameras and network streams to scores and events."""
from .detector import Detection, OnlineDetector
from .events import EventDetector
from .feature_extractor import FeatureExtractor
from .sources import Source, open_source

__all__ = [
    'Detection', 'EventDetector', 'FeatureExtractor', 'OnlineDetector',
    'Source', 'open_source'
]
