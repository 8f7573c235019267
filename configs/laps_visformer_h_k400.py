# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model H: 32 x 320 x 320. Paper, Table 4: top-1 79.72, top-5 94.08, 346.0 G
# multiply-accumulates a view, 40.0 M parameters.
_base_ = 'laps_visformer_b_k400.py'

from mmvidattn.utils.config import change

clip = dict(clip_len=32, frame_interval=8)
train_pipeline = change(_base_.train_pipeline, SpreadSampleFrames=clip)
val_pipeline = change(_base_.val_pipeline, SpreadSampleFrames=clip)
test_pipeline = change(_base_.test_pipeline, SpreadSampleFrames=clip)

model = dict(backbone=dict(num_frames=32, pyramid=(1, 2, 3, 4, 5)))
train_dataloader = dict(
    batch_size=4, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(
    batch_size=4, dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))

auto_scale_lr = dict(base_batch_size=32)
