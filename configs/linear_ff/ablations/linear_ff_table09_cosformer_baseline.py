# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, cosFormer, baseline. Paper: top-1 61.18. Table 1 has the same model
# at 62.0.
_base_ = 'linear_ff_table01_cosformer.py'
