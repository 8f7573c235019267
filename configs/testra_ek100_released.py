# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# testra_ek100.py with the released MixClip: in half of the actions, all steps
# are replaced by a single step of a different action. The paper inserts crops
# of several steps instead.
_base_ = 'testra_ek100.py'

from mmvidattn.utils.config import derive

derive(_base_, train_pipeline=dict(MixClip=dict(mode='single')))
