# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks of the loops."""
from .atomic_checkpoint_hook import AtomicCheckpointHook
from .data_time_hook import DataTimeHook
from .exact_resume_hook import ExactResumeHook
from .fine_tuning_hooks import NewClassifierHook, PatientStoppingHook
from .helpers import find_hook
from .precise_bn_hook import PreciseBNHook
from .preemption_hook import PreemptionHook
from .skip_nan_steps_hook import SkipNanStepsHook
from .skipped_videos_hook import SkippedVideosHook
from .tolerant_logger_hook import TolerantLoggerHook

__all__ = [
    'AtomicCheckpointHook', 'DataTimeHook', 'ExactResumeHook',
    'NewClassifierHook', 'PatientStoppingHook', 'PreciseBNHook',
    'PreemptionHook', 'SkipNanStepsHook', 'SkippedVideosHook',
    'TolerantLoggerHook', 'find_hook'
]
