# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model L: 16 x 320 x 320. Paper, Table 4: top-1 78.71, top-5 93.77, 173.0 G
# multiply-accumulates a view, 40.0 M parameters.
_base_ = 'laps_visformer_b_k400.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=16, frame_interval=8)
train_pipeline = change(_base_.train_pipeline, SpreadSampleFrames=clip)
val_pipeline = change(_base_.val_pipeline, SpreadSampleFrames=clip)
test_pipeline = change(_base_.test_pipeline, SpreadSampleFrames=clip)

model = dict(backbone=dict(num_frames=16, pyramid=(1, 2, 3, 4)))
train_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

auto_scale_lr = dict(base_batch_size=64)
