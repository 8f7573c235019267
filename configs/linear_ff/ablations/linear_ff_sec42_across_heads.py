# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 4.2, one map of all channels. Paper: no figure. Its Eqs. 4 and 5 leave
# out heads; the released code has one map for the channels of each head.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(across_heads=True)))
