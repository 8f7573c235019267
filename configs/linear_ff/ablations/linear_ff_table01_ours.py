# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 1, ours. Paper: top-1 65.5, top-5 90.1, 52.2 M, 257.8 G. The printed
# cost is that of an older gate, on Q and K only
# (linear_ff_table04_qk_cooperative_shared.py), and the parameters those with
# 400 classes.
_base_ = '../../linear_ff_ssv2.py'
