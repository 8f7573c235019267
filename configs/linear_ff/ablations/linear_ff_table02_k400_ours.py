# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, ours on K400. Paper: top-1 78.0, top-5 94.2.
_base_ = '../../linear_ff_k400.py'
