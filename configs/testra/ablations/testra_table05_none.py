# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, positions in neither memory. Paper: recall of actions 15.7.
_base_ = '../../testra_rgb_ek100.py'

model = dict(backbone=dict(work_memory_pos_embed=False))
