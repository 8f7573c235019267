# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer, model HR: 336 x 336. Paper, Table 7: top-1 65.85,
# top-5 89.97, 573.3 G multiply-accumulates per view. The jitter for 224 is
# scaled by 1.5.
_base_ = 'linear_ff_ssv2.py'

img_size = 336
model = dict(backbone=dict(img_size=img_size))

_base_.train_pipeline[4].scale_range = (384, 480)
_base_.train_pipeline[5].size = img_size
_base_.val_pipeline[3].scale = (-1, img_size)
_base_.val_pipeline[4].crop_size = img_size
_base_.test_pipeline[3].scale = (-1, img_size)
_base_.test_pipeline[4].crop_size = img_size
train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
