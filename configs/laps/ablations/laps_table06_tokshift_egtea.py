# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, TokShift: 8 x 224 x 224. Paper: top-1 64.82.
_base_ = [
    '../../_base_/models/laps_vit.py',
    '../../_base_/datasets/egtea_laps.py',
    '../../_base_/schedules/sgd_36e_laps.py',
    '../../_base_/default_runtime.py'
]

model = dict(
    backbone=dict(attention='2d', shift='token'),
    cls_head=dict(num_classes=106))

train_dataloader = dict(batch_size=36)
val_dataloader = dict(batch_size=36)

optim_wrapper = dict(optimizer=dict(lr=0.18))
auto_scale_lr = dict(base_batch_size=288)
