# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7, HR. Paper: top-1 65.85, top-5 89.97, 573.3 G.
_base_ = '../../linear_ff_hr_ssv2.py'
