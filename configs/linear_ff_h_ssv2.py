# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer, model H: 32 frames. Paper, Table 7: top-1 65.67,
# top-5 90.27, 530.2 G multiply-accumulates per view.
_base_ = 'linear_ff_ssv2.py'

num_frames = 32
model = dict(backbone=dict(num_frames=num_frames))

_base_.train_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].clip_len = num_frames
train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))
