# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Linear video
# transformer on Something-Something v2, Table 10 of the paper; the warm-up
# starts at 0.003.
_base_ = 'sgd_35e.py'

from mmvidattn.utils.config import change

optim_wrapper = dict(optimizer=dict(lr=0.035, weight_decay=4e-4))
param_scheduler = change(
    _base_.param_scheduler, WarmupCosineLR=dict(start_factor=0.003 / 0.035))
