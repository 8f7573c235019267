# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 9, Performer, baseline. Paper: top-1 58.82.
_base_ = 'linear_ff_table01_performer.py'
