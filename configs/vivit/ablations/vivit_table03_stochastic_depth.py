# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, + stochastic depth. Paper: action 40.2. The color jitter is that of
# Kinetics.
_base_ = 'vivit_table03_rand_augment.py'

from mmvidattn.utils.config import change

train_pipeline = change(
    _base_.train_pipeline,
    ScenicRandAugment=dict(
        _delete_=True, type='ScenicColorJitter', prob=0.8, gray_prob=0.1))

train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
