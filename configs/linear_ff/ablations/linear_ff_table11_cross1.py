# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 11, spatial shift, size 1. Paper: top-1 65.5, top-5 90.1.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        spatial_shift=dict(
            _delete_=True, mode='cross', size=1, alpha=0.5)))
