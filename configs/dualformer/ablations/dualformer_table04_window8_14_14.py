# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, 32 x 2 frames, window (8, 14, 14). Paper: 324 G for 4 x 1 views,
# top-1 79.7, top-5 94.5.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(window_size=(8, 14, 14)))
