# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, Model 1 on EPIC-Kitchens-100. Paper: action 43.1.
_base_ = 'vivit_table02_fact_encoder_epic.py'

model = dict(backbone=dict(model='joint', num_temporal_layers=None))
