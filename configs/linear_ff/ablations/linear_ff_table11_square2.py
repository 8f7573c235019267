# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 11, squared kernel, size 2. Paper: top-1 65.2, top-5 89.8.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        spatial_shift=dict(
            _delete_=True, mode='square', size=2, alpha=0.5)))
