# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Linear video transformer, model S: 8 frames. Paper, Table 7: top-5 88.68,
# 129.1 G multiply-accumulates per view (its top-1 is missing from the text).
_base_ = 'linear_ff_ssv2.py'

from mmvidattn.utils.config import derive

derive(_base_, num_frames=8)
