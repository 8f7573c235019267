# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, Q and K, separate. Paper: top-1 64.46.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(_delete_=True, mode='separate')))
