# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Model HR: 336 x 336. Paper, Table 7: top-1 65.85, top-5 89.97, 573.3 G
# multiply-accumulates a view. The jitter is that of 224, scaled by 1.5.
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    RandomRescale=dict(scale_range=(384, 480)), RandomCrop=dict(size=336))
val_pipeline = change(
    _base_.val_pipeline,
    Resize=dict(scale=(-1, 336)), CenterCrop=dict(crop_size=336))
test_pipeline = change(
    _base_.test_pipeline,
    Resize=dict(scale=(-1, 336)), ThreeCrop=dict(crop_size=336))

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=test_pipeline))
