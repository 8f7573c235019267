# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. LSTR on
# TVSeries. The metric is calibrated AP.
_base_ = [
    '_base_/models/lstr.py', '_base_/datasets/tvseries_features.py',
    '_base_/schedules/adam_25e_testra.py', '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


model = dict(cls_head=dict(loss_cls=dict(ignore_index=None)))
# Early in a video, the long memory repeats the samples so far.
stretch = dict(stretch_long_memory=True)
train_dataloader = dict(dataset=stretch)
val_dataloader = dict(dataset=stretch)
test_dataloader = dict(dataset=stretch)
