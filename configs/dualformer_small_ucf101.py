# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-S on UCF-101, from a Kinetics-400 checkpoint: load_from. The
# paper, Table 2: top-1 97.4 at 4 x 1 views, 636 G multiply-accumulates for the
# four; 97.5 at 4 x 3 views, 1908 G.
_base_ = 'dualformer_tiny_ucf101.py'

model = dict(
    backbone=dict(arch='small', drop_path_rate=0.3),
    cls_head=dict(in_channels=768))

num_frames = 32
_base_.train_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].clip_len = num_frames
train_dataloader = dict(dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

optim_wrapper = dict(optimizer=dict(weight_decay=0.1))
