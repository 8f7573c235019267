# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, cosFormer on K600. Paper: top-1 78.4, top-5 92.5.
_base_ = '../../linear_ff_k600.py'

model = dict(
    backbone=dict(
        attention=dict(_delete_=True, type='CosFormerAttention'),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
