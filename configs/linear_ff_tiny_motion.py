# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Quickstart: trains in minutes on two CPU cores, on the dataset of
# tools/data/motion/make_motion.py.
_base_ = [
    '_base_/models/linear_ff.py', '_base_/datasets/motion.py',
    '_base_/schedules/adamw_8e_motion.py', '_base_/default_runtime.py'
]

model = dict(
    backbone=dict(
        num_frames=8,
        img_size=64,
        patch_frames=3,
        patch_stride=12,
        patch_padding=4,
        embed_dims=96,
        # One layer with both shifts in both attentions learns the direction of
        # motion in fewer steps than two released layers.
        num_layers=1,
        shift_placement='both',
        num_heads=6,
        init_std=0.1,
        embed_init_std=0.5),
    cls_head=dict(
        num_classes=8, in_channels=96, hidden_dims=96, dropout_ratio=0.1))

optim_wrapper = dict(optimizer=dict(lr=4e-3))
_base_.param_scheduler[1].T_max = 10
_base_.param_scheduler[1].end = 10
train_cfg = dict(max_epochs=10, val_interval=5)
