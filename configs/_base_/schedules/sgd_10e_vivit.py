# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT on Moments in Time.
_base_ = 'sgd_30e_vivit.py'

from mmvidattn.utils.config import change

optim_wrapper = dict(optimizer=dict(lr=0.25))
param_scheduler = change(
    _base_.param_scheduler, CosineAnnealingLR=dict(T_max=7.5, end=10))
train_cfg = dict(max_epochs=10)
