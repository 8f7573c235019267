# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, R = [1, 1, 1], as its released file has it. Paper: top-1 75.86.
_base_ = 'laps_table02_r1.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline, RandomRescale=dict(scale_range=(224, 320)))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

model = dict(backbone=dict(shift_fraction=1 / 8))
optim_wrapper = dict(optimizer=dict(lr=0.09023))
