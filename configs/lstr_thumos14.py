# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LSTR on THUMOS'14. TeSTra's paper, Table 1: 69.5 mAP with these features.
_base_ = [
    '_base_/models/testra.py', '_base_/datasets/thumos14_features.py',
    '_base_/schedules/adam_25e_testra.py', '_base_/default_runtime.py'
]

# TeSTra's model with plain attention to a long memory with positions; the work
# memory is not part of the long memory.
model = dict(
    backbone=dict(decay=1., fusion='none', long_memory_pos_embed=True))
# Early in a video, the long memory repeats the samples so far.
stretch = dict(stretch_long_memory=True)
train_dataloader = dict(dataset=stretch)
val_dataloader = dict(dataset=stretch)
test_dataloader = dict(dataset=stretch)
