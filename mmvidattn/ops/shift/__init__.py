# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .naive import naive_neighbour_shift
from .plan import BOUNDARIES, SPATIAL_MODES, TEMPORAL_MODES, Fold, shift_plan
from .shift import neighbour_shift

__all__ = [
    'BOUNDARIES', 'SPATIAL_MODES', 'TEMPORAL_MODES', 'Fold', 'shift_plan',
    'naive_neighbour_shift', 'neighbour_shift'
]
