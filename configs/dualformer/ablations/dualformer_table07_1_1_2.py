# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7, 1, 1, 2. Paper: 216 G for 4 x 1 views, 22.3 M, top-1 79.2, top-5
# 93.9.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(temporal_pooling=(1, 1, 2)))
