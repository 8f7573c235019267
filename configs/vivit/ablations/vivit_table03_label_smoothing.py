# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, + label smoothing. Paper: action 43.1. All but mixup.
_base_ = 'vivit_table02_fact_encoder_epic.py'

model = dict(data_preprocessor=dict(blending=None))
