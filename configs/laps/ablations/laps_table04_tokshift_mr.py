# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, TokShift (MR): 8 x 256 x 256. Paper: top-1 77.68, top-5 93.55,
# 175.8 G, 85.9 M; without the products of attention, as "ViT (Video)". The
# rate is that of TokShift's own repository: 16 clips on each of two GPUs.
_base_ = '../../laps_vit_k400.py'

from mmvidattn.utils.config import change

clip = dict(frame_interval=32)
train_pipeline = change(
    _base_.train_pipeline, SpreadSampleFrames=clip,
    RandomRescale=dict(scale_range=(256, 380)), RandomCrop=dict(size=256))
val_pipeline = change(
    _base_.val_pipeline, SpreadSampleFrames=clip,
    Resize=dict(scale=(-1, 256)), CenterCrop=dict(crop_size=256))
test_pipeline = change(
    _base_.test_pipeline, SpreadSampleFrames=clip,
    Resize=dict(scale=(-1, 256)), ThreeCrop=dict(crop_size=256))

model = dict(
    backbone=dict(img_size=256, attention='2d', shift='token'))
train_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(
    batch_size=16, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.076))
auto_scale_lr = dict(base_batch_size=32)
