# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# 16 epochs with one epoch of warm-up, for the smaller datasets.
_base_ = 'adamw_30e_dualformer.py'

from mmvidattn.utils.config import change

param_scheduler = change(
    _base_.param_scheduler,
    LinearLR=dict(end=1), CosineAnnealingLR=dict(T_max=16, end=16))
train_cfg = dict(max_epochs=16)
auto_scale_lr = dict(base_batch_size=128)
