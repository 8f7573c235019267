# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, LARA on K400. Paper: top-1 77.5 (copied). The row "RALA": figures of
# LARA's authors for a model of their own, not for this backbone.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='LARAAttention', num_landmarks=49),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
