# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 7, S. Paper: top-5 88.68, 129.1 G. The top-1 is missing from the text.
_base_ = '../../linear_ff_s_ssv2.py'
