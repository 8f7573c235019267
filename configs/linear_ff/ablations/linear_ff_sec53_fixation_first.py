# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 5.3, fixation before association. Paper: top-1 0.82 and top-5 0.42 below
# the default's 65.46 and 90.11.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation_first=True))
