# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 10 of the paper; the warm-up starts at 0.003 (SSv2).
_base_ = 'sgd_35e.py'

optim_wrapper = dict(optimizer=dict(lr=0.035, weight_decay=4e-4))
param_scheduler = [
    dict(
        type='LinearLR',
        start_factor=0.003 / 0.035,
        by_epoch=True,
        begin=0,
        end=5,
        convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR',
        T_max=30,
        eta_min=0,
        by_epoch=True,
        begin=5,
        end=35,
        convert_to_iter_based=True)
]
