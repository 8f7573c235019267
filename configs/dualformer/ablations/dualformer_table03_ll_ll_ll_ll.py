# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, (LL, LL, LL, LL). Paper: 244 G for 4 x 1 views, 21.7 M, top-1
# 78.4, top-5 93.3.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(pattern=('LL', 'LL', 'LL', 'LL')))
