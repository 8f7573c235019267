# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .lara import WEIGHTINGS, lara_attention
from .naive import naive_landmark_pool, naive_lara_attention
from .pool import landmark_grid, landmark_pool

__all__ = [
    'WEIGHTINGS', 'landmark_grid', 'landmark_pool', 'lara_attention',
    'naive_landmark_pool', 'naive_lara_attention'
]
