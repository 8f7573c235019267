# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""What takes part in the training and test loops."""
from .hooks import (
    ExactResumeHook,
    NanGuardHook,
    PreciseBNHook,
    PreemptionHook,
    SafeCheckpointHook,
    SafeLoggerHook,
    SkippedVideosHook,
)
from .warmup_cosine_lr import WarmupCosineLR

__all__ = [
    'ExactResumeHook', 'NanGuardHook', 'PreciseBNHook', 'PreemptionHook',
    'SafeCheckpointHook', 'SafeLoggerHook', 'SkippedVideosHook',
    'WarmupCosineLR'
]
