# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, LG_1: the scale (4, 4, 4) alone, in the stages that have two.
# Paper: 224 G for 4 x 1 views, 21.8 M, top-1 78.4, top-5 93.4.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(
    backbone=dict(
        pyramid_sizes=(((4, 4, 4), ), ((4, 4, 4), ), ((8, 7, 7), ), ())))
