# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 2, ours on K600. Paper: top-1 84.1, top-5 96.2.
_base_ = '../../linear_ff_k600.py'
