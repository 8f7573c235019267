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
from .sample_ring import (
    SampleRing,
    read_rows,
    sample_ring,
    sample_scores,
    write_row,
)
from .temporal_smoothing import (
    log_temporal_kernel,
    temporal_smoothing_attention,
)
from .window_smoothing import window_smoothing

__all__ = [
    'SampleRing', 'SmoothingState', 'exponential_smoothing',
    'log_temporal_kernel', 'naive_exponential_smoothing',
    'naive_temporal_smoothing_attention', 'read_rows', 'sample_ring',
    'sample_scores', 'smoothing_state', 'temporal_smoothing_attention',
    'window_smoothing', 'write_row'
]
