# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6b, the work memory behind the long one. Paper: recall of actions 16.0.
_base_ = '../../testra_rgb_ek100.py'

model = dict(backbone=dict(fusion='long'))
