# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner, hooks and schedules."""
from mmaction.registry import HOOKS, LOOPS, RUNNERS
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, ValLoop

from .hooks import (
    AtomicCheckpointHook,
    DataTimeHook,
    ExactResumeHook,
    NewClassifierHook,
    PatientStoppingHook,
    PreciseBNHook,
    PreemptionHook,
    SkipNanStepsHook,
    SkippedVideosHook,
    TolerantLoggerHook,
)
from .layer_decay_constructor import LearningRateDecayOptimWrapperConstructor
from .runner import VideoRunner
from .warmup_cosine_lr import WarmupCosineLR

__all__ = [
    'AtomicCheckpointHook', 'DataTimeHook', 'ExactResumeHook',
    'LearningRateDecayOptimWrapperConstructor', 'NewClassifierHook',
    'PatientStoppingHook', 'PreciseBNHook', 'PreemptionHook',
    'SkipNanStepsHook', 'SkippedVideosHook', 'TolerantLoggerHook',
    'VideoRunner', 'WarmupCosineLR'
]

# Names in configs of earlier versions.
for registry, name, module in (
        (RUNNERS, 'SafeRunner', VideoRunner),
        (HOOKS, 'NanGuardHook', SkipNanStepsHook),
        (HOOKS, 'SafeCheckpointHook', AtomicCheckpointHook),
        (HOOKS, 'SafeLoggerHook', TolerantLoggerHook),
        (LOOPS, 'SafeEpochBasedTrainLoop', EpochBasedTrainLoop),
        (LOOPS, 'SafeIterBasedTrainLoop', IterBasedTrainLoop),
        (LOOPS, 'SafeValLoop', ValLoop)):
    registry.register_module(name, module=module)
