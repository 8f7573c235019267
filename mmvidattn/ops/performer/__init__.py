# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .naive import naive_performer_attention, naive_performer_features
from .performer import KINDS, performer_attention, performer_features
from .projection import random_projection

__all__ = [
    'KINDS', 'naive_performer_attention', 'naive_performer_features',
    'performer_attention', 'performer_features', 'random_projection'
]
