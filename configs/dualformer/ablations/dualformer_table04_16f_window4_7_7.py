# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, 16 x 4 frames, window (4, 7, 7). Paper: 104 G for 4 x 1 views,
# top-1 78.0, top-5 93.2.
_base_ = 'dualformer_table04_16f_window8_7_7.py'

model = dict(backbone=dict(window_size=(4, 7, 7)))
