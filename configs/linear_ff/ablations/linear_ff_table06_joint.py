# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, joint. Paper: top-1 58.17. The full model, as the caption says, with
# one attention over all tokens of the clip.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(pattern='joint'))
