# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, Linear Transformer, baseline. Paper: top-1 60.42.
_base_ = 'linear_ff_table01_linear_transformer.py'
