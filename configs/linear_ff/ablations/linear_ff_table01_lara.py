# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, LARA. Paper: top-1 63.7, 102.0 M, 257.6 G (copied). The row "RALA":
# figures of LARA's authors for a model of their own, not for this backbone.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LARAAttention', num_landmarks=49),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
