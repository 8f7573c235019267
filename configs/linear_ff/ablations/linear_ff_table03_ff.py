# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, FF. Paper: top-1 62.57.
_base_ = '../../linear_ff_ssv2.py'

model = dict(backbone=dict(temporal_shift=None, spatial_shift=None))
