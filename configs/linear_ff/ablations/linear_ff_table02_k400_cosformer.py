# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, cosFormer on K400. Paper: top-1 73.0, top-5 91.1.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(
        attention=dict(_delete_=True, type='CosFormerAttention'),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
