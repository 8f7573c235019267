# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, baseline. Paper: top-1 61.67.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(fixation=None, temporal_shift=None, spatial_shift=None))
