# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models by name, predictions, and what the command line tools share."""
from .labels import Prediction, read_labels
from .models import find_config, get_model, list_models, load_config
from .predict import VideoClassifier, VideoPrediction, predict_video
from .sliding import SlidingClassifier

__all__ = [
    'Prediction', 'SlidingClassifier', 'VideoClassifier',
    'VideoPrediction', 'find_config', 'get_model', 'list_models',
    'load_config', 'predict_video', 'read_labels'
]
