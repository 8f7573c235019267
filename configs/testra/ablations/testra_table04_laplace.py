# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Table 4, Laplace kernel. Paper: recall of actions 16.95 in windows, 16.94 as
# a stream.
_base_ = '../../testra_rgb_ek100.py'
