# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 5.3, cooperation by multiplication. Paper: top-1 about 0.5 below 65.46.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(aggregate='mul')))
