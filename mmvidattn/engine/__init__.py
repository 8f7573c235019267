# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Runner, hooks and schedules."""
from ..lazy import lazy_package

lazy_package(__name__, {
    'hooks.atomic_checkpoint_hook': ['AtomicCheckpointHook'],
    'hooks.exact_resume_hook': ['ExactResumeHook'],
    'hooks.fine_tuning_hooks': ['NewClassifierHook', 'PatientStoppingHook'],
    'hooks.precise_bn_hook': ['PreciseBNHook'],
    'hooks.preemption_hook': ['PreemptionHook'],
    'hooks.report_hooks': ['DataTimeHook', 'SkippedVideosHook',
                           'TolerantLoggerHook'],
    'hooks.skip_nan_steps_hook': ['SkipNanStepsHook'],
    'layer_decay_constructor': ['LearningRateDecayOptimWrapperConstructor'],
    'runner': ['VideoRunner'],
    'warmup_cosine_lr': ['WarmupCosineLR']})
