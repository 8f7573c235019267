# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model B of the older released files, which shift 1/8 of the channels
# from either side. Paper, Table 3: top-1 77.56.
_base_ = 'laps_visformer_b_k400.py'

model = dict(backbone=dict(shift_fraction=1 / 8))
