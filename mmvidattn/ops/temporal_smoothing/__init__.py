# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .exponential_smoothing import (
    SmoothingState,
    exponential_smoothing,
    smoothing_state,
)
from .naive import (
    naive_exponential_smoothing,
    naive_temporal_smoothing_attention,
)
from .temporal_smoothing import (
    log_temporal_kernel,
    temporal_smoothing_attention,
)
from .window_smoothing import WindowState, window_smoothing, window_state

__all__ = [
    'SmoothingState', 'WindowState', 'exponential_smoothing',
    'log_temporal_kernel', 'naive_exponential_smoothing',
    'naive_temporal_smoothing_attention', 'smoothing_state',
    'temporal_smoothing_attention', 'window_smoothing', 'window_state'
]
