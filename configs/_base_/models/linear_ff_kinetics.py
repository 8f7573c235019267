# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Shifts of
# the paper's Table 10 for Kinetics in the sense of the released code. Mixup
# and label smoothing follow the released recipe.
_base_ = 'linear_ff.py'

model = dict(
    backbone=dict(
        temporal_shift=dict(divisor=8),
        spatial_shift=dict(_delete_=True, mode='cross', size=4, divisor=8)),
    cls_head=dict(num_classes=None, label_smooth_eps=0.3),
    data_preprocessor=dict(
        blending=dict(type='MixupBlending', num_classes=None, alpha=0.4)))
