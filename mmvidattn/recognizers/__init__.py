# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Models that a config selects by ``model.type``."""
from ..lazy import lazy_package

lazy_package(__name__, dict(
    append_reversed_clips=['AppendReversedClips'],
    distilled_recognizer3d=['DistilledRecognizer3D'],
    fine_tuned_recognizer3d=['FineTunedRecognizer3D'],
    online_action_detector=['OnlineActionDetector'],
    token_label_recognizer3d=['TokenLabelRecognizer3D']))
