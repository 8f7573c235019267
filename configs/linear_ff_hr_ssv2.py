# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer, model HR: 336 x 336. Paper, Table 7: top-1 65.85,
# top-5 89.97, 573.3 G multiply-accumulates per view. The jitter for 224 is
# scaled by 1.5.
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import derive

derive(_base_, img_size=336)
