# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, joint as released. Paper: top-1 58.17. The released code's joint
# attention has neither gate nor shifts.
_base_ = 'linear_ff_table06_joint.py'

model = dict(
    backbone=dict(fixation=None, temporal_shift=None, spatial_shift=None))
