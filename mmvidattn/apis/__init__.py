# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models by name, predictions, and what the command line tools share."""
from .models import find_config, get_model, list_models, load_config
from .online import OnlineDetector
from .predict import Prediction, predict_video, read_labels

__all__ = [
    'OnlineDetector', 'Prediction', 'find_config', 'get_model', 'list_models',
    'load_config', 'predict_video', 'read_labels'
]
