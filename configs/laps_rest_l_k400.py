# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (RL), on ResT-L: 32 x 320 x 320. Paper, Table 3: top-1 76.71, 595.0 G
# multiply-accumulates a view, 51.2 M parameters.
_base_ = 'laps_rest_b_k400.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=32, frame_interval=8)
train_pipeline = change(
    _base_.train_pipeline, SpreadSampleFrames=clip,
    RandomRescale=dict(scale_range=(320, 480)), RandomCrop=dict(size=320))
val_pipeline = change(
    _base_.val_pipeline, SpreadSampleFrames=clip,
    Resize=dict(scale=(-1, 320)), CenterCrop=dict(crop_size=320))
test_pipeline = change(
    _base_.test_pipeline, SpreadSampleFrames=clip,
    Resize=dict(scale=(-1, 320)), ThreeCrop=dict(crop_size=320))

model = dict(
    backbone=dict(arch='large', num_frames=32, pyramid=(1, 2, 3, 4)))
train_dataloader = dict(
    batch_size=2, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=2, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.018))
auto_scale_lr = dict(base_batch_size=16)
