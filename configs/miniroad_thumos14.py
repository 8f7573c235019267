# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MiniROAD on THUMOS'14. The authors' page: 71.8 mAP with these features.
_base_ = [
    '_base_/models/miniroad.py', '_base_/datasets/thumos14_features.py',
    '_base_/schedules/adamw_10e_miniroad.py', '_base_/default_runtime.py'
]

window = dict(long_steps=0, work_steps=128)
# A window ends at every fourth step of a video, starting with the first.
train_dataloader = dict(
    sampler=dict(stride=4), dataset=dict(pad_start=True, **window))
# Evaluate whole videos, also during training.
val_dataloader = dict(batch_size=1, dataset=dict(windows='videos', **window))
test_dataloader = dict(dataset=window)
