# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6a, MixClip rate 0.2. Paper: recall of verbs, nouns and actions
# 26.0, 35.3, 16.0.
_base_ = '../../testra_rgb_ek100.py'

from mmvidattn.utils.config import change

train_pipeline = change(_base_.train_pipeline, MixClip=dict(prob=0.2))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
