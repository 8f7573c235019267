# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model L of the older released files, which shift 1/8 of the channels
# from either side. Paper, Table 4: top-1 78.71, top-5 93.77.
_base_ = 'laps_visformer_l_k400.py'

model = dict(backbone=dict(shift_fraction=1 / 8))
