# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6a, MixClip rate 0.5. Paper: recall of verbs, nouns and actions
# 26.8, 36.2, 17.0.
_base_ = '../../testra_rgb_ek100.py'

from mmvidattn.utils.config import change

train_pipeline = change(_base_.train_pipeline, MixClip=dict(prob=0.5))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
