# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Four temporal blocks, which match the paper's parameters and the released
# configs for SSv2 and EPIC-Kitchens.
_base_ = 'vivit_l16x2.py'

model = dict(backbone=dict(model='fact_encoder', num_temporal_layers=4))
