# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, TokShift-L (HR): 8 x 384 x 384. Paper: top-1 96.80.
_base_ = 'laps_table05_tokshift_ucf101.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    RandomRescale=dict(scale_range=(384, 480)), RandomCrop=dict(size=384))
val_pipeline = change(
    _base_.val_pipeline,
    Resize=dict(scale=(-1, 384)), CenterCrop=dict(crop_size=384))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=dict(scale=(-1, 384)), ThreeCrop=dict(crop_size=384))

model = dict(
    backbone=dict(arch='large', img_size=384),
    cls_head=dict(in_channels=1024))
train_dataloader = dict(
    batch_size=1, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=1, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.01))
auto_scale_lr = dict(base_batch_size=4)
