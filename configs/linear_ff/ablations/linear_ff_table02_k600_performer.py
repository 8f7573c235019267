# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Performer on K600. Paper: top-1 72.0, top-5 91.1.
_base_ = '../../linear_ff_k600.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='PerformerAttention', num_features=64),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
