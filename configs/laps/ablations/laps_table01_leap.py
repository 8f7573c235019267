# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, LA. Paper: top-1 75.84, 40.1 G, 39.8 M.
_base_ = '../../laps_visformer_k400.py'

model = dict(backbone=dict(shift='none'))
