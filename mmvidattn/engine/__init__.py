# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner, training loops, hooks and schedules."""
from .hooks import (
    DataTimeHook,
    ExactResumeHook,
    NanGuardHook,
    NewClassifierHook,
    PatientStoppingHook,
    PreciseBNHook,
    PreemptionHook,
    SafeCheckpointHook,
    SafeLoggerHook,
    SkippedVideosHook,
)
from .layer_decay_constructor import LearningRateDecayOptimWrapperConstructor
from .loops import SafeEpochBasedTrainLoop, SafeIterBasedTrainLoop
from .runner import SafeRunner
from .warmup_cosine_lr import WarmupCosineLR

__all__ = [
    'DataTimeHook', 'ExactResumeHook',
    'LearningRateDecayOptimWrapperConstructor',
    'NanGuardHook', 'NewClassifierHook', 'PatientStoppingHook',
    'PreciseBNHook', 'PreemptionHook', 'SafeCheckpointHook',
    'SafeEpochBasedTrainLoop', 'SafeIterBasedTrainLoop', 'SafeLoggerHook',
    'SafeRunner', 'SkippedVideosHook', 'WarmupCosineLR'
]
