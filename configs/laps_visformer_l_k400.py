# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model L: 16 x 320 x 320. Paper, Table 4: top-1 78.71, top-5 93.77,
# 173.0 G multiply-accumulates per view, 40.0 M parameters.
_base_ = 'laps_visformer_b_k400.py'

num_frames = 16
model = dict(backbone=dict(num_frames=num_frames, pyramid=(1, 2, 3, 4)))

_base_.train_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].clip_len = num_frames
train_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(batch_size=8, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

auto_scale_lr = dict(base_batch_size=64)
