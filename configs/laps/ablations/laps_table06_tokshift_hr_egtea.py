# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, TokShift (HR): 8 x 384 x 384. Paper: top-1 65.77.
_base_ = 'laps_table06_tokshift_egtea.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    RandomRescale=dict(scale_range=(384, 512)), RandomCrop=dict(size=384))
val_pipeline = change(
    _base_.val_pipeline,
    Resize=dict(scale=(-1, 384)), CenterCrop=dict(crop_size=384))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=dict(scale=(-1, 384)), ThreeCrop=dict(crop_size=384))

model = dict(backbone=dict(img_size=384))
train_dataloader = dict(
    batch_size=5, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=5, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.05))
auto_scale_lr = dict(base_batch_size=20)
