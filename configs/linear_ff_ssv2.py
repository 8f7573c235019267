# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Released recipe for Something-Something v2, with the launch script's 32 clips
# per batch. Paper, Table 1: top-1 65.5, top-5 90.1 at 2 x 3 views, 257.8 G
# multiply-accumulates per view.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/datasets/ssv2.py',
    '_base_/schedules/sgd_35e.py', '_base_/default_runtime.py'
]

train_dataloader = dict(drop_last=True)
