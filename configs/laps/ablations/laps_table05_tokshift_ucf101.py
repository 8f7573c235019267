# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, TokShift: 8 x 256 x 256. Paper: top-1 95.35.
_base_ = 'laps_table05_vit_ucf101.py'

model = dict(backbone=dict(shift='token'))
