# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model B: 8 x 320 x 320. Paper, Table 3: top-1 77.56, 86.4 G
# multiply-accumulates per view, 40.0 M parameters.
_base_ = 'laps_visformer_k400.py'

img_size = 320
model = dict(backbone=dict(img_size=img_size))

_base_.train_pipeline[3].scale_range = (320, 480)
_base_.train_pipeline[4].size = img_size
_base_.val_pipeline[3].scale = (-1, img_size)
_base_.val_pipeline[4].crop_size = img_size
_base_.test_pipeline[3].scale = (-1, img_size)
_base_.test_pipeline[4].crop_size = img_size
train_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.036))
auto_scale_lr = dict(base_batch_size=128)
