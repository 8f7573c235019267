# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# XViT on Something-Something v2. The linear video transformer's paper, Table
# 1: top-1 66.2, top-5 90.6 at 1 x 3 views, 850.0 G multiply-accumulates for
# the three views. The released recipe, xvit_ssv2_released.py, tests 2 x 3
# views.
_base_ = [
    '_base_/models/xvit.py', '_base_/datasets/ssv2.py',
    '_base_/schedules/sgd_35e.py', '_base_/default_runtime.py'
]

# 8 GPUs
train_dataloader = dict(batch_size=8, drop_last=True)
_base_.test_pipeline[1].num_clips = 1
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

# The learning rate is for 64 clips per batch.
auto_scale_lr = dict(base_batch_size=64)
