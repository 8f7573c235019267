# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, sigmoid. Paper: top-1 63.26.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(attention=dict(kernel='sigmoid', offset=0.)))
