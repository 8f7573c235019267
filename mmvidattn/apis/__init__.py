# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Python API for models and predictions, and code that commands share."""
import importlib
from typing import Any

from .bundle import save_bundle
from .bundle_file import load_bundle
from .config import find_config, list_models, load_config
from .labels import Prediction, read_labels
from .models import get_model
from .predict import VideoClassifier, VideoPrediction, predict_video
from .sliding import SlidingClassifier

__all__ = [
    'Prediction', 'SlidingClassifier', 'VideoClassifier',
    'VideoPrediction', 'find_config', 'get_model', 'list_models',
    'load_bundle', 'load_config', 'predict_video', 'read_labels',
    'save_bundle'
]


def __getattr__(name: str) -> Any:
    # Import lazily, because `apis` must not import `live`.
    if name == 'OnlineDetector':
        return importlib.import_module('mmvidattn').OnlineDetector
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
