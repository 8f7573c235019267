# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Schedule of
# LAPS' paper for EGTEA Gaze+ (Sec. 4.4).
_base_ = 'sgd_18e_laps.py'

from mmvidattn.utils.config import change

param_scheduler = change(
    _base_.param_scheduler, MultiStepLR=dict(milestones=[20, 30], end=36))
train_cfg = dict(max_epochs=36)
