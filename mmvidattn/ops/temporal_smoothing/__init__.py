# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .rings import fill_rows, push_row, read_rows, write_row
from .streams import (
    SmoothingState,
    exponential_smoothing,
    naive_exponential_smoothing,
    sample_scores,
    smoothing_state,
    window_smoothing,
)
from .temporal_smoothing import (
    log_temporal_kernel,
    naive_temporal_smoothing_attention,
    temporal_smoothing_attention,
)

__all__ = [
    'SmoothingState', 'exponential_smoothing', 'fill_rows',
    'log_temporal_kernel', 'naive_exponential_smoothing',
    'naive_temporal_smoothing_attention', 'push_row', 'read_rows',
    'sample_scores', 'smoothing_state', 'temporal_smoothing_attention',
    'window_smoothing', 'write_row'
]
