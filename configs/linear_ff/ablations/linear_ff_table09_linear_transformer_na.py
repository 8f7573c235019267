# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, Linear Transformer, + NA. Paper: top-1 62.84.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(attention=dict(kernel='elu+1', offset=0.), fixation=None))
