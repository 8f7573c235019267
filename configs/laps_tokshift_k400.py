# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TokShift on ViT-B/16: 16 x 224 x 224, frames 32 apart. Paper, Table 4: top-1
# 78.2, top-5 93.80, 269.5 G multiply-accumulates a view, those of attention
# left out, and 85.9 M parameters.
_base_ = 'laps_vit_k400.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=16, frame_interval=32)
train_pipeline = change(_base_.train_pipeline, SpreadSampleFrames=clip)
val_pipeline = change(_base_.val_pipeline, SpreadSampleFrames=clip)
test_pipeline = change(_base_.test_pipeline, SpreadSampleFrames=clip)

model = dict(backbone=dict(num_frames=16, attention='2d', shift='token'))
train_dataloader = dict(
    batch_size=12, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(batch_size=12, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.12))
auto_scale_lr = dict(base_batch_size=48)
