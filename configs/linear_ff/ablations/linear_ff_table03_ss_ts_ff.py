# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 3, SS + TS + FF. Paper: top-1 65.46.
_base_ = '../../linear_ff_ssv2.py'
