# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LSTR without a long memory: two layers of causal self-attention over 8 s. In
# the released code, LONG_MEMORY_SECONDS: 0. No figure of it is at hand.
_base_ = '../../lstr_thumos14.py'

model = dict(backbone=dict(long_memory_length=0))
no_long = dict(long_steps=0)
train_dataloader = dict(dataset=no_long)
val_dataloader = dict(dataset=no_long)
test_dataloader = dict(dataset=no_long)
