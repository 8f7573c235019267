# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Sec. 5.3, no kernel. Paper: does not converge. Scores of both signs are
# divided by their sum, which may be zero.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(attention=dict(kernel='identity', offset=0.)))
