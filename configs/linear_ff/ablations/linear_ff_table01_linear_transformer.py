# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, Linear Transformer. Paper: top-1 60.4, top-5 86.7, 51.7 M, 243.3 G.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(kernel='elu+1', offset=0.),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
