# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# linear_ff_tiny_motion as a stream, trained in minutes on two CPU cores on the
# dataset of tools/data/motion/make_motion.py.
_base_ = 'linear_ff_tiny_motion.py'

model = dict(
    backbone=dict(
        pattern='causal', decay=dict(half_life=(2, 16), learned=True)))
