# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# XViT on Kinetics, as released: 30 epochs; the warm-up starts at 0.01.
_base_ = 'sgd_35e_xvit.py'

from mmvidattn.utils.config import change

optim_wrapper = dict(optimizer=dict(weight_decay=1e-5))
param_scheduler = change(
    _base_.param_scheduler,
    WarmupCosineLR=dict(start_factor=0.01 / 0.03, end=30))
train_cfg = dict(max_epochs=30)
