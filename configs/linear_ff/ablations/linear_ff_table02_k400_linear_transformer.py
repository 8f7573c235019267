# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Linear Transformer on K400. Paper: top-1 70.5, top-5 90.2.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(
        attention=dict(kernel='elu+1', offset=0.),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
