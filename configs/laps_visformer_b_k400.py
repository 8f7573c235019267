# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model B: 8 x 320 x 320. Paper, Table 3: top-1 77.56, 86.4 G
# multiply-accumulates a view, 40.0 M parameters.
_base_ = 'laps_visformer_k400.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    RandomRescale=dict(scale_range=(320, 480)), RandomCrop=dict(size=320))
val_pipeline = change(
    _base_.val_pipeline,
    Resize=dict(scale=(-1, 320)), CenterCrop=dict(crop_size=320))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=dict(scale=(-1, 320)), ThreeCrop=dict(crop_size=320))

model = dict(backbone=dict(img_size=320))
train_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=16, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.036))
auto_scale_lr = dict(base_batch_size=128)
