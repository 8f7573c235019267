# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, ViT (Video): 8 x 256 x 256. Paper: top-1 91.46.
_base_ = [
    '../../_base_/models/laps_vit.py',
    '../../_base_/datasets/ucf101_laps.py',
    '../../_base_/schedules/sgd_18e_laps.py',
    '../../_base_/default_runtime.py'
]

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    RandomRescale=dict(scale_range=(256, 380)), RandomCrop=dict(size=256))
val_pipeline = change(
    _base_.val_pipeline,
    Resize=dict(scale=(-1, 256)), CenterCrop=dict(crop_size=256))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=dict(scale=(-1, 256)), ThreeCrop=dict(crop_size=256))

model = dict(
    backbone=dict(img_size=256, attention='2d', shift='none'),
    cls_head=dict(num_classes=101))
train_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=16, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.076))
auto_scale_lr = dict(base_batch_size=32)
