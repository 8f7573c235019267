# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer, model H: 32 frames. Paper, Table 7: top-1 65.67,
# top-5 90.27, 530.2 G multiply-accumulates per view.
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import derive

derive(_base_, num_frames=32)
