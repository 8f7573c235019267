# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, LG_2: the scale (8, 7, 7) alone, in every stage. Paper: 232 G for
# 4 x 1 views, 21.8 M, top-1 79.3, top-5 93.9.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(
    backbone=dict(
        pyramid_sizes=(((8, 7, 7), ), ((8, 7, 7), ), ((8, 7, 7), ), ((8, 7,
                                                                     7), ))))
