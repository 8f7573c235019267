# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, R = [2, 2, 2]. Paper: top-1 75.82.
_base_ = '../../laps_visformer_k400.py'

model = dict(backbone=dict(pyramid=(2, )))
