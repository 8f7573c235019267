# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 12, SS. Paper: top-1 77.53.
_base_ = '../../linear_ff_k400.py'

model = dict(backbone=dict(fixation=None, temporal_shift=None))
