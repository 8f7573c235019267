# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Performer on K400. Paper: top-1 67.0, top-5 88.8.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='PerformerAttention', num_features=64),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
