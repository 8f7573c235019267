# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, Linear Transformer, + FF. Paper: top-1 61.87.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(kernel='elu+1', offset=0.),
        temporal_shift=None,
        spatial_shift=None))
