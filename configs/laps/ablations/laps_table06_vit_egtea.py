# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, ViT (Video): 8 x 224 x 224. Paper: top-1 62.59.
_base_ = [
    '../../_base_/models/laps_vit.py',
    '../../_base_/datasets/egtea_laps.py',
    '../../_base_/schedules/sgd_36e_laps.py',
    '../../_base_/default_runtime.py'
]

model = dict(
    backbone=dict(attention='2d', shift='none'),
    cls_head=dict(num_classes=106))

train_dataloader = dict(batch_size=24)
val_dataloader = dict(batch_size=24)

optim_wrapper = dict(optimizer=dict(lr=0.24))
auto_scale_lr = dict(base_batch_size=96)
