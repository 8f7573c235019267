# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model E: 32 x 360 x 360. Paper, Table 4: top-1 80.03, top-5 94.48, 434.0 G
# multiply-accumulates a view, 40.2 M parameters.
_base_ = 'laps_visformer_h_k400.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    RandomRescale=dict(scale_range=(360, 540)), RandomCrop=dict(size=360))
val_pipeline = change(
    _base_.val_pipeline,
    Resize=dict(scale=(-1, 360)), CenterCrop=dict(crop_size=360))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=dict(scale=(-1, 360)), ThreeCrop=dict(crop_size=360))

model = dict(backbone=dict(img_size=360))
train_dataloader = dict(
    batch_size=3, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(
    batch_size=3, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

auto_scale_lr = dict(base_batch_size=24)
