# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, (LG, LG, LL, LL). Paper: 244 G for 4 x 1 views, 21.8 M, top-1
# 79.3, top-5 94.0.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(pattern=('LG', 'LG', 'LL', 'LL')))
