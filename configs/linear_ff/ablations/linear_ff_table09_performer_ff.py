# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, Performer, + FF. Paper: no figure. The cell is empty in the text.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='PerformerAttention', num_features=64),
        temporal_shift=None,
        spatial_shift=None))
