# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, crops of 288. Paper: top-1 80.7, 2919 G. The short side is 329, in
# proportion to 256 for crops of 224; the paper does not say.
_base_ = '../../vivit_l16x2_joint_k400.py'

from mmvidattn.utils.config import change

resize = dict(scale=(-1, 329))
train_pipeline = change(
    _base_.train_pipeline, Resize=resize, RandomCrop=dict(size=288))
val_pipeline = change(
    _base_.val_pipeline, Resize=resize, CenterCrop=dict(crop_size=288))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=resize,
    UniformThreeCrop=dict(crop_size=288))

model = dict(backbone=dict(img_size=288))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
