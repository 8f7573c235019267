# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, Performer. Paper: top-1 58.8, top-5 85.4, 51.7 M, 250.6 G. The paper
# does not say how many random features; its FLOPs come out with 64.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='PerformerAttention', num_features=64),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
