# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, Base2D on ViT. Paper: top-1 76.41, 141.0 G, 86.1 M.
_base_ = '../../laps_vit_k400.py'

model = dict(backbone=dict(attention='2d', shift='none'))
train_dataloader = dict(batch_size=24)
val_dataloader = dict(batch_size=24)

optim_wrapper = dict(optimizer=dict(lr=0.24))
auto_scale_lr = dict(base_batch_size=96)
