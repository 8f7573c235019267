# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, random crop, flip, color jitter. Paper: action 38.4. Starts from
# an image model, as on Kinetics.
_base_ = 'vivit_table03_stochastic_depth.py'

model = dict(backbone=dict(drop_path_rate=0.))
