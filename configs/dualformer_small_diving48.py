# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# DualFormer-S on Diving-48, from a Kinetics-400 checkpoint: load_from. The
# paper, Table 2: top-1 81.2 at 4 x 1 views, 636 G multiply-accumulates for the
# four; 81.8 at 4 x 3 views, 1908 G. Trained for 30 epochs of 64 clips a step,
# as released; the paper says 16 epochs.
_base_ = 'dualformer_tiny_diving48.py'

model = dict(
    backbone=dict(arch='small', drop_path_rate=0.2),
    cls_head=dict(in_channels=768))

num_frames = 32
_base_.train_pipeline[1].clip_len = num_frames
_base_.val_pipeline[1].clip_len = num_frames
_base_.test_pipeline[1].clip_len = num_frames
# 8 clips on each of 8 GPUs.
train_dataloader = dict(
    batch_size=8, dataset=dict(pipeline=_base_.train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=_base_.val_pipeline))
test_dataloader = dict(dataset=dict(pipeline=_base_.test_pipeline))

optim_wrapper = dict(optimizer=dict(weight_decay=0.02))
_base_.param_scheduler[1].T_max = 30
_base_.param_scheduler[1].end = 30
train_cfg = dict(max_epochs=30)
auto_scale_lr = dict(base_batch_size=64)
