# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, Q and K, cooperative, one ratio. Paper: top-1 64.78. Counted as
# released, this is the network of Table 1's 257.8 G.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(fixation=dict(inputs='qk')))
