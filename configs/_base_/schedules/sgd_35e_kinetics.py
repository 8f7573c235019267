# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0. Linear video
# transformer on Kinetics, Table 10 of the paper; the warm-up starts at 0.01.
_base_ = 'sgd_35e_paper.py'

from mmvidattn.utils.config import change

param_scheduler = change(
    _base_.param_scheduler, WarmupCosineLR=dict(start_factor=0.01 / 0.035))
