# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model E: 32 x 360 x 360. Paper, Table 4: top-1 80.03, top-5 94.48,
# 434.0 G multiply-accumulates per view, 40.2 M parameters.
_base_ = 'laps_visformer_h_k400.py'

img_size = 360
model = dict(backbone=dict(img_size=img_size))

_base_.train_pipeline[3].scale_range = (360, 540)
_base_.train_pipeline[4].size = img_size
_base_.val_pipeline[3].scale = (-1, img_size)
_base_.val_pipeline[4].crop_size = img_size
_base_.test_pipeline[3].scale = (-1, img_size)
_base_.test_pipeline[4].crop_size = img_size
train_dataloader = dict(
    batch_size=3, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(batch_size=3, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

auto_scale_lr = dict(base_batch_size=24)
