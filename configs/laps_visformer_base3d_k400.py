# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS' baseline Base3D: attention among the tokens of all frames. Paper, Table
# 1: top-1 76.31, 46.5 G multiply-accumulates per view, 39.8 M parameters.
_base_ = 'laps_visformer_k400.py'

model = dict(backbone=dict(attention='3d', shift='none'))

train_dataloader = dict(batch_size=20)
val_dataloader = dict(batch_size=20)

optim_wrapper = dict(optimizer=dict(lr=0.1))
auto_scale_lr = dict(base_batch_size=160)
