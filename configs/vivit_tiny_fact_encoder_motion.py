# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# vivit_tiny_motion.py with Model 2. Only the two frames of a tubelet show it
# in which direction a shape turns: it takes more layers and epochs to learn.
_base_ = 'vivit_tiny_motion.py'

model = dict(
    backbone=dict(
        model='fact_encoder', num_layers=4, num_temporal_layers=1))

param_scheduler = [
    dict(type='LinearLR', start_factor=0.05, by_epoch=False, begin=0, end=20),
    dict(
        type='CosineAnnealingLR',
        T_max=16,
        eta_min=0,
        by_epoch=True,
        begin=0,
        end=16,
        convert_to_iter_based=True)
]
train_cfg = dict(max_epochs=16)
