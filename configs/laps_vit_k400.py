# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (VT), on ViT-B/16: 8 x 224 x 224. Paper, Table 3: top-1 78.15, 146.0 G
# multiply-accumulates per view, 86.1 M parameters.
_base_ = [
    '_base_/models/laps_vit.py', '_base_/datasets/kinetics400.py',
    '_base_/pipelines/laps.py', '_base_/schedules/sgd_18e_laps.py',
    '_base_/default_runtime.py'
]

from mmvidattn.utils.config import derive

derive(_base_)


train_dataloader = dict(batch_size=18)
val_dataloader = dict(batch_size=18)

optim_wrapper = dict(optimizer=dict(lr=0.18))
auto_scale_lr = dict(base_batch_size=72)
