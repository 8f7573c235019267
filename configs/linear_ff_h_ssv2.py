# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model H: 32 frames. Paper, Table 7: top-1 65.67, top-5 90.27, 530.2 G
# multiply-accumulates a view.
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline, SegmentSampleFrames=dict(clip_len=32))
val_pipeline = change(
    _base_.val_pipeline, SegmentSampleFrames=dict(clip_len=32))
test_pipeline = change(
    _base_.test_pipeline, SegmentSampleFrames=dict(clip_len=32))

model = dict(backbone=dict(num_frames=32))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
