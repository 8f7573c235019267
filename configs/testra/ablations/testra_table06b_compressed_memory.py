# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 6b, the work memory beside the compressed one. Paper: recall of
# actions 17.0.
_base_ = '../../testra_rgb_ek100.py'
