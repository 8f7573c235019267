# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, SS. Paper: top-1 61.99.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=None, temporal_shift=None))
