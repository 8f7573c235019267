# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, Linformer. Paper: top-1 57.2, top-5 84.4, 53.5 M, 294.2 G.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LinformerAttention', num_projections=256),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
