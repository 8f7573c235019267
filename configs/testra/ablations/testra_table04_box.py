# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, box kernel. Paper: recall of actions 16.14 by FIFO, 16.08 by
# exponential smoothing that forgets nothing.
_base_ = '../../testra_rgb_ek100.py'

model = dict(backbone=dict(decay=1.))
