# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, positions in both memories. Paper: recall of actions 16.8.
_base_ = '../../testra_rgb_ek100.py'

model = dict(backbone=dict(long_memory_pos_embed=True))
