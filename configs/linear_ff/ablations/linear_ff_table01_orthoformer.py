# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, Orthoformer. Paper: top-1 63.8, 102.0 M, 257.7 G (copied). The row
# "Oformer": figures of Motionformer's authors for a model of their own, not
# for this backbone.
_base_ = '../../linear_ff_ssv2.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='OrthoformerAttention', num_landmarks=64),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
