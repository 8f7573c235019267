# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# linear_ff_k400 as a stream: each frame attends to itself and to all previous
# frames, with decay. Not from the paper, and not trained here.
_base_ = 'linear_ff_k400.py'

model = dict(
    backbone=dict(
        pattern='causal', decay=dict(half_life=(4, 64), learned=True)))
