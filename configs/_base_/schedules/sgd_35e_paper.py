# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 10 of the paper; the warm-up starts at 0.003 (SSv2).
_base_ = 'sgd_35e.py'

from mmvidattn.utils.config import change

optim_wrapper = dict(optimizer=dict(lr=0.035, weight_decay=4e-4))
param_scheduler = change(
    _base_.param_scheduler, WarmupCosineLR=dict(start_factor=0.003 / 0.035))
