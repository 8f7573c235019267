# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7, H. Paper: top-1 65.67, top-5 90.27, 530.2 G.
_base_ = '../../linear_ff_h_ssv2.py'
