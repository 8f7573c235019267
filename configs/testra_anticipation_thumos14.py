# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# TeSTra on THUMOS'14 that also predicts the next two seconds. Paper, Table 2:
# mAP 66.2 at 0.25 s to 48.9 at 2 s, 56.8 on average.
_base_ = 'testra_thumos14.py'

model = dict(backbone=dict(num_anticipation_tokens=8))
ahead = dict(anticipation_steps=8, anticipation_rate=1)
train_dataloader = dict(dataset=ahead)
val_dataloader = dict(dataset=ahead)
test_dataloader = dict(dataset=ahead)
