# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (RL), on ResT-L: 32 x 320 x 320. Paper, Table 3: top-1 76.71, 595.0 G
# multiply-accumulates per view, 51.2 M parameters.
_base_ = 'laps_rest_b_k400.py'

from mmvidattn.utils.config import derive

derive(
    _base_,
    num_frames=32,
    img_size=320,
    train_pipeline=dict(RandomRescale=dict(scale_range=(320, 480))))



model = dict(backbone=dict(arch='large', pyramid=(1, 2, 3, 4)))
train_dataloader = dict(batch_size=2)
val_dataloader = dict(batch_size=2)

optim_wrapper = dict(optimizer=dict(lr=0.018))
auto_scale_lr = dict(base_batch_size=16)
