# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 12, baseline. Paper: top-1 77.27.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(fixation=None, temporal_shift=None, spatial_shift=None))
