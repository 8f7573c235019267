# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 12, SS + TS + FF. Paper: top-1 77.96.
_base_ = '../../linear_ff_k400.py'
