# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model S: 8 frames. Paper, Table 7: top-5 88.68, 129.1 G
# multiply-accumulates a view (its top-1 is missing from the text).
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline, SegmentSampleFrames=dict(clip_len=8))
val_pipeline = change(
    _base_.val_pipeline, SegmentSampleFrames=dict(clip_len=8))
test_pipeline = change(
    _base_.test_pipeline, SegmentSampleFrames=dict(clip_len=8))

model = dict(backbone=dict(num_frames=8))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
