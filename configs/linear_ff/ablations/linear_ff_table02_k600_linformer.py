# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Linformer on K600. Paper: top-1 67.5, top-5 88.5.
_base_ = '../../linear_ff_k600.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LinformerAttention', num_projections=256),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
