# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# MAT on THUMOS'14. The authors' page: 71.6 mAP with these features. Like the
# authors, we test the moving average of the weights.
_base_ = [
    '_base_/models/mat.py', '_base_/datasets/thumos14_features.py',
    '_base_/schedules/adam_25e_testra.py', '_base_/default_runtime.py'
]

memory = dict(
    long_steps=1024,
    anticipation_steps=8,
    anticipation_rate=1,
    stretch_long_memory=True)
train_dataloader = dict(dataset=dict(future_steps=48, **memory))
val_dataloader = dict(dataset=memory)
test_dataloader = dict(dataset=memory)

custom_hooks = [dict(type='EMAHook', momentum=0.001)]
