# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# An eighth of the channels from each neighboring frame; mixup and label
# smoothing as in the released recipe.
_base_ = 'xvit.py'

model = dict(
    backbone=dict(temporal_shift=dict(divisor=8)),
    cls_head=dict(num_classes=None, label_smooth_eps=0.3),
    data_preprocessor=dict(
        blending=dict(type='MixupBlending', num_classes=None, alpha=0.4)))
