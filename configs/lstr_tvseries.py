# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LSTR on TVSeries. The metric is calibrated AP.
_base_ = [
    '_base_/models/testra.py', '_base_/datasets/tvseries_features.py',
    '_base_/schedules/adam_25e_testra.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(decay=1., fusion='none', long_memory_pos_embed=True),
    cls_head=dict(num_classes=31, loss_cls=dict(ignore_index=None)))
# Early in a video, the long memory repeats the samples so far.
stretch = dict(stretch_long_memory=True)
train_dataloader = dict(dataset=stretch)
val_dataloader = dict(dataset=stretch)
test_dataloader = dict(dataset=stretch)
