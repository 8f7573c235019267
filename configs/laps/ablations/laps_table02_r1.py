# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, R = [1, 1, 1]. Paper: top-1 75.86.
_base_ = '../../laps_visformer_k400.py'

model = dict(backbone=dict(pyramid=(1, )))
