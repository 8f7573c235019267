# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, R = [3, 3, 3]. Paper: top-1 75.55.
_base_ = '../../laps_visformer_k400.py'

model = dict(backbone=dict(pyramid=(3, )))
