# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6b, without a long memory. Paper: recall of actions 16.1.
_base_ = '../../testra_rgb_ek100.py'

model = dict(backbone=dict(long_memory_length=0))
no_long = dict(long_steps=0)
# There is nothing to mix clips into.
train_dataloader = dict(
    dataset=dict(pipeline=_base_.train_pipeline[1:], **no_long))
val_dataloader = dict(dataset=no_long)
test_dataloader = dict(dataset=no_long)
