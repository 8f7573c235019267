# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .leap_attention import leap_attention
from .naive import leap_frames, naive_leap_attention
from .pair import leap_pair, leap_step, leap_unpair

__all__ = [
    'leap_attention', 'leap_frames', 'leap_pair', 'leap_step', 'leap_unpair',
    'naive_leap_attention'
]
