# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, no fixation. Paper: top-1 64.28.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=None))
