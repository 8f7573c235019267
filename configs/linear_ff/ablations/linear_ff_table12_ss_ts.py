# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 12, SS + TS. Paper: top-1 77.70.
_base_ = '../../linear_ff_k400.py'

model = dict(backbone=dict(fixation=None))
