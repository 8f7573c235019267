# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .naive import naive_window_merge, naive_window_partition
from .window import fit_window, window_merge, window_partition

__all__ = [
    'fit_window', 'naive_window_merge', 'naive_window_partition',
    'window_merge', 'window_partition'
]
