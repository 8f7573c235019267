# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Plain causal transformer on THUMOS'14, our baseline with TeSTra's recipe. No
# paper reports a score for it, and we have not trained it.
_base_ = [
    '_base_/models/causal_transformer.py',
    '_base_/datasets/thumos14_features.py',
    '_base_/schedules/adam_25e_testra.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


window = dict(long_steps=0, work_steps=128)
train_dataloader = dict(dataset=window)
val_dataloader = dict(batch_size=1, dataset=dict(windows='videos', **window))
test_dataloader = dict(dataset=window)
