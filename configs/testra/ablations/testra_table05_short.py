# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 5, positions in the short memory. Paper: recall of actions 17.0.
_base_ = '../../testra_rgb_ek100.py'
