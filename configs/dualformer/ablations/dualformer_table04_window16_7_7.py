# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, 32 x 2 frames, window (16, 7, 7). Paper: 272 G for 4 x 1 views,
# top-1 79.7, top-5 94.4.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(window_size=(16, 7, 7)))
