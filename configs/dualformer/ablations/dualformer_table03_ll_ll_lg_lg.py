# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, (LL, LL, LG, LG). Paper: 236 G for 4 x 1 views, 21.7 M, top-1
# 78.8, top-5 93.5.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(pattern=('LL', 'LL', 'LG', 'LG')))
