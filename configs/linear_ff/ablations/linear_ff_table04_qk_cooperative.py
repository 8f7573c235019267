# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, Q and K, cooperative. Paper: top-1 64.61.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(inputs='qk', shared=False)))
