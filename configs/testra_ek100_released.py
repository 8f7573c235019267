# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# testra_ek100.py with the released MixClip: in half of the actions, all steps
# are replaced by a single step of a different action. The paper inserts crops
# of several steps instead.
_base_ = 'testra_ek100.py'

train_pipeline = [
    dict(type='MixClip', prob=0.5, mode='single'),
    dict(type='LoadFeatureWindow'),
    dict(type='PackFeatureInputs')
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
