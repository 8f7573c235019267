# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Linear Transformer on K600. Paper: top-1 74.5, top-5 92.3.
_base_ = '../../linear_ff_k600.py'

model = dict(
    backbone=dict(
        attention=dict(kernel='elu+1', offset=0.),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
