# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, cosFormer, + FF. Paper: top-1 61.94.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(_delete_=True, type='CosFormerAttention'),
        temporal_shift=None,
        spatial_shift=None))
