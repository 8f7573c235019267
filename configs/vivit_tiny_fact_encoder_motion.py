# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_tiny_motion.py with Model 2. It sees the direction of a rotation only
# within the two frames of a tubelet, and needs more layers and epochs.
_base_ = 'vivit_tiny_motion.py'

model = dict(
    backbone=dict(
        model='fact_encoder', num_layers=4, num_temporal_layers=1))

_base_.param_scheduler[1].T_max = 16
_base_.param_scheduler[1].end = 16
train_cfg = dict(max_epochs=16)
