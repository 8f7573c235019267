# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Python API for models and predictions, and code that commands share."""
from ..lazy import lazy_package

lazy_package(__name__, {
    'bundle': ['save_bundle'],
    'bundle_file': ['load_bundle'],
    'config': ['find_config', 'list_models', 'load_config'],
    'labels': ['Prediction', 'read_labels'],
    'models': ['get_model'],
    'video_classifier': ['VideoClassifier', 'VideoPrediction'],
    'sliding': ['SlidingClassifier'],
    '.live': ['OnlineDetector']})
