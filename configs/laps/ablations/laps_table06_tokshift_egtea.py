# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6, TokShift: 8 x 224 x 224. Paper: top-1 64.82.
_base_ = 'laps_table06_vit_egtea.py'

model = dict(backbone=dict(shift='token'))
