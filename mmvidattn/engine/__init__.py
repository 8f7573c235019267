# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner, hooks and schedules."""
from mmaction.registry import HOOKS, LOOPS, RUNNERS
from mmengine.runner import EpochBasedTrainLoop, IterBasedTrainLoop, ValLoop

from .hooks.atomic_checkpoint_hook import AtomicCheckpointHook
from .hooks.data_time_hook import DataTimeHook
from .hooks.exact_resume_hook import ExactResumeHook
from .hooks.fine_tuning_hooks import NewClassifierHook, PatientStoppingHook
from .hooks.precise_bn_hook import PreciseBNHook
from .hooks.preemption_hook import PreemptionHook
from .hooks.skip_nan_steps_hook import SkipNanStepsHook
from .hooks.skipped_videos_hook import SkippedVideosHook
from .hooks.tolerant_logger_hook import TolerantLoggerHook
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
