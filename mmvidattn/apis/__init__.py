# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models by name, predictions, and what the command line tools share."""
from typing import Any

from .labels import Prediction, read_labels
from .models import find_config, get_model, list_models, load_config
from .predict import VideoClassifier, VideoPrediction, predict_video
from .sliding import SlidingClassifier

__all__ = [
    'OnlineDetector', 'Prediction', 'SlidingClassifier', 'VideoClassifier',
    'VideoPrediction', 'find_config', 'get_model', 'list_models',
    'load_config', 'predict_video', 'read_labels'
]


def __getattr__(name: str) -> Any:
    # The room above this one, which imports it: only once it is wanted.
    if name == 'OnlineDetector':
        from ..live import OnlineDetector
        return OnlineDetector
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
