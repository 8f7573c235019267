# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TokShift on ViT-B/16: 16 x 224 x 224, frames 32 apart. Paper, Table 4: top-1
# 78.2, top-5 93.80, 269.5 G multiply-accumulates per view (without the
# products of attention), and 85.9 M parameters.
_base_ = 'laps_vit_k400.py'

num_frames = 16
model = dict(
    backbone=dict(num_frames=num_frames, attention='2d', shift='token'))

_base_.train_pipeline[1].clip_len = num_frames
_base_.train_pipeline[1].frame_interval = 32
_base_.val_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].frame_interval = 32
_base_.test_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].frame_interval = 32
train_dataloader = dict(
    batch_size=12, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(
    batch_size=12, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.12))
auto_scale_lr = dict(base_batch_size=48)
