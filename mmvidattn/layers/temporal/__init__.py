# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Layers that turn an image network into a video network."""
from .frame_mixing import ATTENTIONS, SHIFTS, FrameMixing
from .inflate import inflate, inflated_modules
from .laps_attention import LAPSAttention

__all__ = [
    'ATTENTIONS', 'SHIFTS', 'FrameMixing', 'LAPSAttention', 'inflate',
    'inflated_modules'
]
