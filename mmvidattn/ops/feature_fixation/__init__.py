# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
from .feature_fixation import AGGREGATES, fixation_ratio
from .naive import naive_fixation_ratio

__all__ = ['AGGREGATES', 'fixation_ratio', 'naive_fixation_ratio']
