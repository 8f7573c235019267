# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, ViT (Video): 8 x 224 x 224, frames 32 apart. Paper: top-1 76.00,
# top-5 92.50, 134.7 G, 85.9 M; without the products of attention.
_base_ = 'laps_table03_vit_base2d.py'

from mmvidattn.utils.config import change

clip = dict(frame_interval=32)
train_pipeline = change(_base_.train_pipeline, SpreadSampleFrames=clip)
val_pipeline = change(_base_.val_pipeline, SpreadSampleFrames=clip)
test_pipeline = change(_base_.test_pipeline, SpreadSampleFrames=clip)

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
