# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# ViViT on SSv2, as released.
_base_ = 'sgd_30e_vivit.py'

from mmvidattn.utils.config import change

optim_wrapper = dict(optimizer=dict(lr=0.4))
param_scheduler = change(
    _base_.param_scheduler, CosineAnnealingLR=dict(T_max=32.5, end=35))
train_cfg = dict(max_epochs=35)
