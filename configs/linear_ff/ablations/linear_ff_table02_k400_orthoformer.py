# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Orthoformer on K400. Paper: top-1 77.5 (copied). The row "Oformer":
# figures of Motionformer's authors for a model of their own, not for this
# backbone.
_base_ = '../../linear_ff_k400.py'

model = dict(
    backbone=dict(
        attention=dict(
            _delete_=True, type='OrthoformerAttention', num_landmarks=64),
        fixation=None,
        temporal_shift=None,
        spatial_shift=None))
