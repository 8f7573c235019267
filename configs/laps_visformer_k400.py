# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. LAPS on
# Kinetics-400, clips of 8 x 224 x 224. Paper, Tables 1 to 4: top-1 76.04,
# top-5 92.56 at 5 x 3 views, 40.1 G multiply-accumulates per view, 39.8 M
# parameters.
_base_ = [
    '_base_/models/laps_visformer.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/laps.py', '_base_/schedules/sgd_18e_laps.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)

train_dataloader = dict(batch_size=40)
val_dataloader = dict(batch_size=40)
