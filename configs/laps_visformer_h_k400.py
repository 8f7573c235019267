# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# LAPS, model H: 32 x 320 x 320. Paper, Table 4: top-1 79.72, top-5 94.08,
# 346.0 G multiply-accumulates per view, 40.0 M parameters.
_base_ = 'laps_visformer_b_k400.py'

num_frames = 32
model = dict(backbone=dict(num_frames=num_frames, pyramid=(1, 2, 3, 4, 5)))

_base_.train_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].clip_len = num_frames
train_dataloader = dict(
    batch_size=4, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(batch_size=4, dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

auto_scale_lr = dict(base_batch_size=32)
