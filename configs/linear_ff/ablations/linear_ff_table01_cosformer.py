# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, cosFormer. Paper: top-1 62.0, top-5 87.3, 51.7 M, 250.6 G. Table 9
# has the same model at 61.18.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(_delete_=True, type='CosFormerAttention'),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
