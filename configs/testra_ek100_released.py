# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# testra_ek100.py with the released code's MixClip: of half of the actions one
# step is pasted all over another. The paper describes crops.
_base_ = 'testra_ek100.py'

from mmvidattn.utils.config import change

train_pipeline = change(_base_.train_pipeline, MixClip=dict(mode='single'))
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
