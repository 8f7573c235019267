# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# 16 epochs, one of them warm-up, on the smaller data sets.
_base_ = 'adamw_30e_dualformer.py'

param_scheduler = _base_.param_scheduler
param_scheduler[0].update(end=1)
param_scheduler[1].update(T_max=16, end=16)
train_cfg = dict(max_epochs=16)
auto_scale_lr = dict(base_batch_size=128)
