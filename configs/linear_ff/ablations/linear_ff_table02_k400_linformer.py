# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Linformer on K400. Paper: top-1 62.6, top-5 86.0.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LinformerAttention', num_projections=256),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
