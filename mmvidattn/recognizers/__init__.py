# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Whole models: what a config's ``model`` names."""
from .distilled_recognizer3d import DistilledRecognizer3D
from .fine_tuned_recognizer3d import FineTunedRecognizer3D
from .online_action_detector import OnlineActionDetector
from .token_label_recognizer3d import TokenLabelRecognizer3D

__all__ = [
    'DistilledRecognizer3D', 'FineTunedRecognizer3D', 'OnlineActionDetector',
    'TokenLabelRecognizer3D'
]
