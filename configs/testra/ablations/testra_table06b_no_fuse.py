# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6b, the memories apart. Paper: recall of actions 15.9.
_base_ = '../../testra_rgb_ek100.py'

model = dict(backbone=dict(fusion='none'))
