# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 12, TS. Paper: top-1 77.43.
_base_ = '../../linear_ff_k400.py'

model = dict(backbone=dict(fixation=None, spatial_shift=None))
