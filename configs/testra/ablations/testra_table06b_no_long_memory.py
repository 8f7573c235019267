# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6b, without a long memory. Paper: recall of actions 16.1.
_base_ = '../../testra_rgb_ek100.py'

from mmvidattn.utils.config import change

model = dict(backbone=dict(long_memory_length=0))
no_long = dict(long_steps=0)
# There is nothing to mix clips into.
train_pipeline = change(_base_.train_pipeline, MixClip=None)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline, **no_long))
val_dataloader = dict(dataset=no_long)
test_dataloader = dict(dataset=no_long)
