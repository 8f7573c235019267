# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (RS), on ResT-S: 8 x 224 x 224. Paper, Table 3: top-1 69.72, 17.6 G
# multiply-accumulates per view, 13.4 M parameters.
_base_ = [
    '_base_/models/laps_rest.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/laps.py', '_base_/schedules/sgd_18e_laps.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(
    _base_,
    train_pipeline=dict(RandomRescale=dict(scale_range=(224, 320))))



train_dataloader = dict(batch_size=40)
val_dataloader = dict(batch_size=40)

optim_wrapper = dict(optimizer=dict(lr=0.09023))
auto_scale_lr = dict(base_batch_size=320)
