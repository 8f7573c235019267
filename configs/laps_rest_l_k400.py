# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS (RL), on ResT-L: 32 x 320 x 320. Paper, Table 3: top-1 76.71, 595.0 G
# multiply-accumulates per view, 51.2 M parameters.
_base_ = 'laps_rest_b_k400.py'

num_frames = 32
img_size = 320
model = dict(
    backbone=dict(
        arch='large', num_frames=num_frames, pyramid=(1, 2, 3, 4)))

_base_.train_pipeline[1].clip_len = num_frames
_base_.train_pipeline[3].scale_range = (320, 480)
_base_.train_pipeline[4].size = img_size
_base_.val_pipeline[1].clip_len = num_frames
_base_.val_pipeline[3].scale = (-1, img_size)
_base_.val_pipeline[4].crop_size = img_size
_base_.test_pipeline[1].clip_len = num_frames
_base_.test_pipeline[3].scale = (-1, img_size)
_base_.test_pipeline[4].crop_size = img_size
train_dataloader = dict(
    batch_size=2, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(batch_size=2, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

optim_wrapper = dict(optimizer=dict(lr=0.018))
auto_scale_lr = dict(base_batch_size=16)
