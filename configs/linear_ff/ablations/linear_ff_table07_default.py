# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7, default. Paper: top-1 65.46, top-5 90.11, 257.8 G.
_base_ = '../../linear_ff_ssv2.py'
