# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models that a config selects by ``model.type``."""
from .append_reversed_clips import AppendReversedClips
from .distilled_recognizer3d import DistilledRecognizer3D
from .fine_tuned_recognizer3d import FineTunedRecognizer3D
from .online_action_detector import OnlineActionDetector
from .token_label_recognizer3d import TokenLabelRecognizer3D

__all__ = [
    'AppendReversedClips', 'DistilledRecognizer3D', 'FineTunedRecognizer3D',
    'OnlineActionDetector', 'TokenLabelRecognizer3D'
]
