# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, L/16x2 FE on Kinetics-400. Paper: top-1 81.7, top-5 93.8, 11.94 T
# of three views. 128 frames, two apart, cover the 250 frames of a video: one
# clip, three crops.
_base_ = '../../vivit_l16x2_fact_encoder_k400.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline, ScenicSampleFrames=dict(clip_len=128))
val_pipeline = change(
    _base_.val_pipeline, ScenicSampleFrames=dict(clip_len=128))
test_pipeline = change(
    _base_.test_pipeline,
    ScenicSampleFrames=dict(clip_len=128, num_clips=1))

model = dict(backbone=dict(num_frames=128))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
