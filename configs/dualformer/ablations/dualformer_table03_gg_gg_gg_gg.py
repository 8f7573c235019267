# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, (GG, GG, GG, GG). Paper: 228 G for 4 x 1 views, 21.8 M, top-1
# 77.6, top-5 93.2.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(pattern=('GG', 'GG', 'GG', 'GG')))
