# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
"""Layers that turn an image network into a video network."""
from ...lazy import lazy_package

lazy_package(__name__, dict(
    frame_mixing=['ATTENTIONS', 'FrameMixing', 'LAPSAttention'],
    inflate=['inflate', 'inflated_modules']))
