# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, Base2D on ResT-S. Paper: top-1 68.13, 16.9 G, 13.4 M.
_base_ = '../../laps_rest_s_k400.py'

model = dict(backbone=dict(attention='2d', shift='none'))
