# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, cosFormer, + NA. Paper: top-1 63.23.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(_delete_=True, type='CosFormerAttention'),
        fixation=None))
