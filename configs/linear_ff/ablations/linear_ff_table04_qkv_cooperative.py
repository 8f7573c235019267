# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, Q, K and V, cooperative. Paper: top-1 65.33.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(shared=False)))
