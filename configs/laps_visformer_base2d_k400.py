# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS' baseline Base2D: Visformer on separate frames. Paper, Tables 1 and 3:
# top-1 74.00, 39.1 G multiply-accumulates per view, 39.8 M parameters.
_base_ = 'laps_visformer_k400.py'

model = dict(backbone=dict(attention='2d', shift='none'))
