# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Hooks of the loops."""
from .data_time_hook import DataTimeHook
from .exact_resume_hook import ExactResumeHook
from .nan_guard_hook import NanGuardHook
from .new_classifier_hook import NewClassifierHook
from .patient_stopping_hook import PatientStoppingHook
from .precise_bn_hook import PreciseBNHook
from .preemption_hook import PreemptionHook
from .safe_checkpoint_hook import SafeCheckpointHook
from .safe_hook import find_hook
from .safe_logger_hook import SafeLoggerHook
from .skipped_videos_hook import SkippedVideosHook

__all__ = [
    'DataTimeHook', 'ExactResumeHook', 'NanGuardHook',
    'NewClassifierHook', 'PatientStoppingHook', 'PreciseBNHook',
    'PreemptionHook', 'SafeCheckpointHook', 'SafeLoggerHook',
    'SkippedVideosHook', 'find_hook'
]
