# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, 32 x 2 frames, window (4, 7, 7). Paper: 224 G for 4 x 1 views,
# top-1 79.1, top-5 93.9.
_base_ = '../../dualformer_tiny_k400.py'

model = dict(backbone=dict(window_size=(4, 7, 7)))
